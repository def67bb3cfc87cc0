//! The source tree, which has the scripts for virtual machines.

use std::env;
use std::path::{Path, PathBuf};

use sluice_error::{Error, Kind, Result};

/// The files by which the top of the tree is known.
const PARTS: [&str; 2] = ["vm/run", "bench/cost/run.sh"];

/// The tree of the current directory, else of this program.
pub fn find() -> Result<PathBuf> {
    let here = env::current_dir().ok();
    let program = env::current_exe().ok();
    [&here, &program].into_iter().flatten().find_map(|path| above(path)).ok_or_else(|| {
        let what = format!(
            "virtual machines need Sluice's source tree, with {} in it; neither the current directory nor this program is in one",
            PARTS.join(" and ")
        );
        Error::new(Kind::Unsupported, what).help("change to a checkout of Sluice's sources and call it there")
    })
}

fn above(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|top| PARTS.iter().all(|part| top.join(part).is_file())).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_is_found_from_inside() {
        let inside = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(above(inside), inside.parent().and_then(Path::parent).map(Path::to_path_buf));
        assert_eq!(above(Path::new("/usr/bin")), None);
    }
}
