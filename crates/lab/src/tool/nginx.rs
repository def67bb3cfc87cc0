//! nginx, a server of pages that is no bottleneck for many clients.

use std::fs;
use std::path::Path;

use sluice_error::{Error, Result};
use sluice_testbed::Namespace;
use sluice_testbed::process::Process;
use sluice_testbed::tool::NGINX;

/// The name of the only page.
pub const PAGE: &str = "page";

/// Starts a server of one page of this size; its files lie in `directory`, which is made.
pub fn start_server(host: &Namespace, address: &str, port: u16, bytes: u32, directory: &Path) -> Result<Process> {
    let file = directory.join("nginx.conf");
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(directory.join(PAGE), vec![b'.'; bytes as usize]))
        .and_then(|()| fs::write(&file, configuration(address, port, &directory.to_string_lossy())))
        .map_err(|e| Error::system(format!("cannot write the server's files in {}: {e}", directory.display())))?;
    let errors = directory.join("errors").to_string_lossy().into_owned();
    host.start(NGINX.program, &["-c", &file.to_string_lossy(), "-e", &errors])
}

/// One process, so that ending it leaves none behind; no log, and no end to a kept connection.
fn configuration(address: &str, port: u16, directory: &str) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {directory}/{kind};\n"))
        .concat();
    format!(
        "daemon off;\nmaster_process off;\npid {directory}/pid;\nerror_log {directory}/errors;\n\
         events {{ worker_connections 8192; }}\n\
         http {{\n  access_log off;\n  sendfile on;\n  tcp_nopush on;\n  keepalive_requests 1000000000;\n{temporary}\
         \x20 server {{ listen {address}:{port} backlog=4096; root {directory}; }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_outside_the_directory() {
        let text = configuration("10.99.3.2", 5201, "/tmp/lab");
        assert!(text.contains("listen 10.99.3.2:5201 backlog=4096; root /tmp/lab;"), "{text}");
        let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
        assert!(paths.clone().count() == 8 && paths.clone().all(|path| path.starts_with("/tmp/lab")), "{text}");
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
