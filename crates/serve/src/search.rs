//! The text of a request that looks for subscribers.

use crate::problem::Problem;
use axum::http::StatusCode;
use sluice_kernel::status::SubscriberSearch;

/// The longest text, bytes: that of the longest key.
const MAX_BYTES: usize = 255;

/// The search for a text.
///
/// # Errors
/// The text is longer than any key.
pub fn of(text: &str) -> Result<SubscriberSearch, Problem> {
    if text.len() > MAX_BYTES {
        let what = format!("the text to search for is longer than {MAX_BYTES} bytes");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, what, "no key is longer: shorten it"));
    }
    Ok(SubscriberSearch::new(text))
}
