//! A real browser without a window, driven by its own driver (chromedriver) as the W3C's WebDriver has it.

use crate::command::{Process, await_that, words};
use crate::net::Ns;
use fantoccini::elements::Element;
use fantoccini::error::CmdError;
use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The port of the driver, in a namespace of its own.
const PORT: u16 = 9515;
/// Time limit for an action of a page.
const LONG: Duration = Duration::from_secs(30);

/// The window and the theme of a browser.
#[derive(Debug, Clone, Copy)]
pub struct Viewport {
    /// Width of the window, CSS pixels.
    pub width: u32,
    /// Height of the window, CSS pixels.
    pub height: u32,
    /// Whether the system theme is dark.
    pub dark: bool,
}

impl Viewport {
    /// A desktop.
    pub const DESKTOP: Viewport = Viewport { width: 1280, height: 900, dark: false };
    /// A phone with a dark theme.
    pub const PHONE: Viewport = Viewport { width: 375, height: 720, dark: true };
}

/// A browser in a namespace, with one window.
pub struct Browser {
    ns: Ns,
    driver: Option<Process>,
    runtime: Runtime,
    client: Client,
}

impl Browser {
    pub fn start(ns: &Ns, look: Viewport) -> Browser {
        let driver = Process::start(&mut words("ip", &format!("netns exec {} chromedriver --port={PORT}", ns.name)));
        await_that("chromedriver has started", LONG, || driver.stdout().contains("started successfully"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut arguments = vec!["--headless=new".to_owned(), "--no-sandbox".to_owned(), "--disable-gpu".to_owned()];
        arguments.push(format!("--window-size={},{}", look.width, look.height));
        if look.dark {
            arguments.push("--blink-settings=preferredColorScheme=0".to_owned());
        }
        let mut chrome = json!({ "args": arguments });
        if look.width < 500 {
            // The window manager would not make a window this narrow.
            let screen = json!({ "width": look.width, "height": look.height, "pixelRatio": 2.0 });
            chrome["mobileEmulation"] = json!({ "deviceMetrics": screen });
        }
        let wanted = json!({ "goog:chromeOptions": chrome });
        let capabilities: Capabilities = wanted.as_object().cloned().expect("an object");
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities);
        let place = format!("http://127.0.0.1:{PORT}");
        let client = ns.inside(|| runtime.block_on(builder.connect(&place))).expect("a session of the browser");
        Browser { ns: ns.clone(), driver: Some(driver), runtime, client }
    }

    #[track_caller]
    fn wait<T: Send>(&self, what: impl Future<Output = Result<T, CmdError>> + Send) -> T {
        self.ns.inside(|| self.runtime.block_on(what)).unwrap_or_else(|error| panic!("the browser: {error}"))
    }

    #[track_caller]
    pub fn open(&self, url: &str) {
        self.wait(self.client.goto(url));
    }

    /// The result of a script.
    #[track_caller]
    pub fn script(&self, script: &str) -> Value {
        self.wait(self.client.execute(script, Vec::new()))
    }

    /// Waits until a script returns something true.
    #[track_caller]
    pub fn until(&self, what: &str, script: &str) {
        await_that(what, LONG, || self.script(&format!("return Boolean({script});")) == true);
    }

    #[track_caller]
    fn element(&self, css: &str) -> Element {
        self.wait(self.client.find(Locator::Css(css)))
    }

    /// Clicks on an element, which must be visible and not covered.
    #[track_caller]
    pub fn click(&self, css: &str) {
        let element = self.element(css);
        self.wait(element.click());
    }

    /// Types into an element.
    #[track_caller]
    pub fn keys(&self, css: &str, keys: &str) {
        let element = self.element(css);
        self.wait(element.send_keys(keys));
    }

    /// The element's visible text.
    #[track_caller]
    pub fn text(&self, css: &str) -> String {
        let element = self.element(css);
        self.wait(element.text())
    }

    /// A picture of the window.
    #[track_caller]
    pub fn picture(&self) -> Vec<u8> {
        self.wait(self.client.screenshot())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser with the session.
        let client = self.client.clone();
        let _ = self.ns.inside(|| self.runtime.block_on(client.close()));
        if let Some(driver) = self.driver.take() {
            driver.signal(Signal::SIGTERM);
            let _ = driver.finish();
        }
    }
}
