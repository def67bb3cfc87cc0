//! The answers to requests that fail: the error and the way out, as JSON.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use sluice_kernel::{Error, Kind};

/// The answer to a request that fails.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    what: String,
    cure: Option<String>,
    /// Findings in a policy, if the problem is a policy's.
    findings: Option<Value>,
}

/// The answer of a handler.
pub type Answer<T = Json<Value>> = std::result::Result<T, Problem>;

impl Problem {
    /// The same problem under another status.
    pub fn with_status(self, status: StatusCode) -> Problem {
        Problem { status, ..self }
    }

    /// A problem with a status, a description, and the way out.
    pub fn new(status: StatusCode, what: impl Into<String>, cure: impl Into<String>) -> Problem {
        Problem { status, what: what.into(), cure: Some(cure.into()), findings: None }
    }

    /// The problem of a policy that is refused for its findings.
    pub fn policy(findings: Value) -> Problem {
        let problem =
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the policy has errors", "correct the listed errors");
        Problem { findings: Some(findings), ..problem }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let status = match error.kind {
            Kind::Input => StatusCode::CONFLICT,
            Kind::Unsupported => StatusCode::NOT_IMPLEMENTED,
            Kind::Privilege => StatusCode::FORBIDDEN,
            Kind::System | Kind::Interrupted => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem { status, what: error.what.trim_end().to_owned(), cure: error.cure, findings: None }
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Problem {
        Problem::new(
            rejection.status(),
            rejection.body_text(),
            "send JSON as docs/serve.md describes it, with its Content-Type",
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = json!({ "error": self.what, "cure": self.cure });
        if let Some(findings) = self.findings {
            body["findings"] = findings;
        }
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert("www-authenticate", axum::http::HeaderValue::from_static("Bearer"));
        }
        response
    }
}
