// Numbers for people.

const scaled = (value, step, units) => {
  let unit = 0;
  while (Math.abs(value) >= step && unit < units.length - 1) { value /= step; unit += 1; }
  const digits = unit === 0 && Number.isInteger(value) ? 0 : Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return [value.toFixed(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, ""), units[unit]];
};

const joined = (pair) => pair.join(" ");

/** Bits per second. */
export const rate = (bps) => joined(scaled(bps, 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]));
/** Bytes. */
export const bytes = (n) => joined(scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]));
/** A count, short. */
export const count = (n) => joined(scaled(n, 1000, ["", "k", "M", "G", "T"])).trim();
/** Microseconds. */
export const micros = (us) => joined(scaled(us, 1000, ["µs", "ms", "s"]));
/** Packets per second. */
export const pps = (n) => `${count(n < 10 ? Math.round(n * 10) / 10 : Math.round(n))}/s`;
/** A part of one. */
export const percent = (part) => `${(part * 100).toFixed(part > 0 && part < 0.1 ? 1 : 0)} %`;
/** Every digit, in groups. */
export const exact = (n) => n.toLocaleString("en").replaceAll(",", "\u202f");
/** Time of day of milliseconds since 1970. */
export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });
/** How long ago, of seconds. */
export const age = (s) => s < 90 ? `${Math.max(0, Math.round(s))} s` : s < 5400 ? `${Math.round(s / 60)} min` : s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;
/** Nothing known. */
export const none = "–";
/** A value that may be missing. */
export const maybe = (value, form) => value === null || value === undefined ? none : form(value);
