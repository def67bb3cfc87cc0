//! The reader of capture files, on any file.

use sluice_cli::capture::frames_in;

const MOST: usize = 10;

/// Reads a capture. Panics where more frames come than were asked for, or one that the classifier cannot be run on.
pub fn run(bytes: &[u8]) {
    match frames_in("capture", bytes, MOST) {
        Ok(frames) => {
            assert!(frames.len() <= MOST);
            assert!(frames.iter().all(|frame| (14..=3000).contains(&frame.len())));
        }
        Err(failure) => assert_eq!(failure.exit_code, 2, "{}", failure.render(false)),
    }
}
