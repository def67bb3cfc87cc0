//! The page: files that are part of the program.

use crate::state::Shared;
use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::hash::{DefaultHasher, Hash, Hasher};

struct Asset {
    path: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

macro_rules! assets {
    ($($path:literal $kind:ident $file:literal,)+) => {
        &[$(Asset { path: $path, kind: $kind, content: include_bytes!(concat!("../assets/", $file)) },)+]
    };
}

const ASSETS: &[Asset] = assets! {
    "/" HTML "index.html",
    "/style.css" CSS "style.css",
    "/icon.svg" SVG "icon.svg",
    "/app.js" SCRIPT "app.js",
    "/api.js" SCRIPT "api.js",
    "/format.js" SCRIPT "format.js",
    "/charts.js" SCRIPT "charts.js",
    "/tables.js" SCRIPT "tables.js",
    "/overview.js" SCRIPT "overview.js",
    "/lists.js" SCRIPT "lists.js",
    "/subscribers.js" SCRIPT "subscribers.js",
    "/subscriber.js" SCRIPT "subscriber.js",
    "/policy.js" SCRIPT "policy.js",
    "/editor.js" SCRIPT "editor.js",
    "/highlight.js" SCRIPT "highlight.js",
    "/vendor/uPlot.iife.min.js" SCRIPT "vendor/uPlot.iife.min.js",
    "/vendor/uPlot.min.css" CSS "vendor/uPlot.min.css",
    "/vendor/LICENSE-uPlot" TEXT "vendor/LICENSE-uPlot",
};

/// The path of each asset.
pub fn router() -> Router<Shared> {
    ASSETS.iter().fold(Router::new(), |router, asset| {
        router.route(asset.path, get(move |headers: HeaderMap| async move { asset.answer(&headers) }))
    })
}

impl Asset {
    fn answer(&self, headers: &HeaderMap) -> Response {
        let tag = format!("\"{:016x}\"", self.digest());
        let cached = [(ETAG, tag.clone()), (CACHE_CONTROL, "no-cache".to_owned())];
        if headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok()) == Some(tag.as_str()) {
            return (StatusCode::NOT_MODIFIED, cached).into_response();
        }
        (cached, [(CONTENT_TYPE, self.kind)], self.content).into_response()
    }

    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.content.hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_refers_only_to_existing_assets() {
        let page = include_str!("../assets/index.html");
        let named = page.split(['"', '\'']).filter(|word| word.ends_with(".js") || word.ends_with(".css"));
        for path in named {
            assert!(
                ASSETS.iter().any(|asset| asset.path.trim_start_matches('/') == path.trim_start_matches('/')),
                "{path}"
            );
        }
        assert!(!page.contains("http://") && !page.contains("https://"), "it works offline");
    }
}
