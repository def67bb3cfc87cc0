//! siege, which asks for a page again and again, over a new connection each time, and prints a line for each.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::tool::nginx::PAGE;
use sluice_error::{Error, Result};
use sluice_testbed::Namespace;
use sluice_testbed::process::{Line, Process};
use sluice_testbed::tool::{SIEGE, STDBUF};

/// siege prints its times in hundredths of a second, too coarse for links without delay, so each request is timed by its line.
const CONFIGURATION: &str = "verbose = true\nquiet = false\ncolor = off\njson_output = false\nshow-logfile = false\n\
                             logging = false\nprotocol = HTTP/1.1\nconnection = close\nparser = false\ntimeout = 30\n";
/// The beginning of the line that siege prints before the first request.
const BEGIN: &str = "The server is now under siege";

/// Starts to ask for the page this many times, one request after the other. siege's own files lie in `directory`, which is made.
pub fn start(host: &Namespace, server: &str, port: u16, requests: u32, directory: &Path) -> Result<Process> {
    let file = directory.join("siegerc");
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&file, CONFIGURATION))
        .map_err(|e| Error::system(format!("cannot write {}: {e}", file.display())))?;
    let (home, file) = (format!("HOME={}", directory.display()), file.to_string_lossy().into_owned());
    let (requests, url) = (requests.to_string(), format!("http://{server}:{port}/{PAGE}"));
    // Through a pipe, siege would write its lines in blocks.
    let call = [&home, STDBUF.program, "-oL", SIEGE.program, "-R", &file, "-b", "-c", "1", "-r", &requests, &url];
    host.start("env", &call)
}

/// The requests that were answered in full: the time of the answer's last byte, and the duration in ms. The first has no duration
/// if its line was read before the one that begins the run, since the two come through different pipes.
pub fn parse(lines: &[Line], bytes: u32) -> Vec<(SystemTime, Option<f64>)> {
    let mut answers = Vec::new();
    let mut began = None;
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by_key(|line| line.at);
    for line in lines {
        let text = line.text.trim();
        let request = text.starts_with("HTTP/") || text.starts_with("[error]");
        if !request && !text.starts_with(BEGIN) {
            continue;
        }
        if !request && began.is_some() {
            continue;
        }
        let took = began.and_then(|began| line.at.duration_since(began).ok());
        if complete(text, bytes) {
            answers.push((line.at, took.map(|took| took.as_secs_f64() * 1e3)));
        }
        began = Some(line.at);
    }
    answers
}

/// Whether a line tells of a request that was answered with the whole page.
fn complete(text: &str, bytes: u32) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let size = words.windows(2).find(|pair| pair[1] == "bytes").and_then(|pair| pair[0].parse().ok());
    words.first().is_some_and(|word| word.starts_with("HTTP/")) && words.get(1) == Some(&"200") && size == Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn requests_are_timed_by_their_lines() {
        let zero = SystemTime::UNIX_EPOCH;
        let line =
            |us, is_error, text: &str| Line { at: zero + Duration::from_micros(us), is_error, text: text.into() };
        let lines = [
            line(2_500, false, "HTTP/1.1 200     0.00 secs:    3000 bytes ==> GET  /page"),
            line(1_000, true, "The server is now under siege..."),
            line(2_900, false, "HTTP/1.1 200     0.00 secs:    3000 bytes ==> GET  /page"),
            line(3_000, true, "[error] socket: read error Connection reset by peer sock.c:539"),
            line(3_100, false, "HTTP/1.1 502     0.00 secs:     166 bytes ==> GET  /page"),
            line(3_400, false, "HTTP/1.1 200     0.00 secs:    1448 bytes ==> GET  /page"),
            line(3_600, false, "HTTP/1.1 200     0.00 secs:    3000 bytes ==> GET  /page"),
            line(3_700, true, "Transactions:\t\t           3 hits"),
        ];
        let times = |lines: &[Line]| -> Vec<Option<i64>> {
            parse(lines, 3_000).into_iter().map(|(_, ms)| ms.map(|ms| (ms * 1e3).round() as i64)).collect()
        };
        assert_eq!(times(&lines), [Some(1_500), Some(400), Some(200)]);
        let mut late = lines.to_vec();
        late[1].at = zero + Duration::from_micros(2_600);
        assert_eq!(times(&late), [None, Some(400), Some(200)]);
    }
}
