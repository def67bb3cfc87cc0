// Requests, and the token that goes with them.

const KEY = "sluice-token";

// The address that `sluice serve` prints has the token behind the #, which browsers do not send.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem(KEY, given);
  history.replaceState(null, "", location.pathname + "#overview");
}

/** What the server says is wrong. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.error ?? `the server answered ${status}`);
    this.status = status;
    this.cure = body.cure ?? "";
    this.findings = body.findings;
  }
}

/** Asks the server; `askToken` is called when it wants the token. */
async function send(method, path, body) {
  const headers = {};
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store" });
  const value = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, value);
  return value;
}

/** Whether requests bear a token; it may be wrong. */
export const hasToken = () => sessionStorage.getItem(KEY) !== null;

let asking = null;

/** Asks for the token, once for all who need it at the time. Whether one was given. */
function askToken(why) {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("login");
    const field = document.getElementById("token");
    document.getElementById("login-why").textContent = why;
    field.value = "";
    dialog.returnValue = "";
    dialog.addEventListener("close", () => {
      asking = null;
      const ok = dialog.returnValue === "ok" && field.value.trim() !== "";
      if (ok) sessionStorage.setItem(KEY, field.value.trim());
      resolve(ok);
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

async function request(method, path, body) {
  for (;;) {
    try {
      return await send(method, path, body);
    } catch (problem) {
      if (problem.status !== 401 || !await askToken(`${problem.message}.`)) throw problem;
    }
  }
}

const of = (name, rest = "") => `api/interfaces/${encodeURIComponent(name)}${rest}`;

export const interfaces = () => request("GET", "api/interfaces");
export const rates = (name) => request("GET", of(name, "/rates"));
export const series = (name, points) => request("GET", of(name, `/series?points=${points}`));
export const flows = (name) => request("GET", of(name, "/flows"));
/** A part of the list of subscribers; what is empty is not asked for. */
export const subscribers = (name, query) => {
  const asked = Object.entries(query).filter(([, value]) => value !== "" && value !== null);
  return request("GET", of(name, `/subscribers?${new URLSearchParams(asked)}`));
};
export const subscriber = (name, id) => request("GET", of(name, `/subscriber?${new URLSearchParams({ name: id })}`));
export const past = (name) => request("GET", of(name, "/history"));
export const entry = (name, number) => request("GET", of(name, `/history/${number}`));
export const policy = (name) => request("GET", of(name, "/policy"));
export const profiles = () => request("GET", "api/profiles");
export const profile = (name) => request("GET", `api/profiles/${encodeURIComponent(name)}`);
export const check = (name, text) => request("POST", of(name, "/check"), { text });
export const apply = (name, wish) => request("POST", of(name, "/apply"), wish);
export const confirm = (name) => request("POST", of(name, "/confirm"));
export const revert = (name) => request("POST", of(name, "/revert"));
export const rollback = (name, number, confirm_s) => request("POST", of(name, "/rollback"), { number, confirm_s });
