//! Compiles BPF programs with clang. Their objects serve every kernel and architecture (CO-RE).

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// A plain `clang` may be too old for the constructs that the kernel's verifier wants to see.
const CLANGS: [&str; 6] = ["clang-19", "clang-20", "clang-21", "clang-22", "clang-18", "clang"];

/// Compiles a source, named from the top of the tree, to `OUT_DIR/OBJECT.bpf.o`. The caller depends on libbpf-sys, which says where libbpf's headers are.
pub fn compile(source: &str, object: &str, options: &[&str]) {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let libbpf = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys names its headers");
    println!("cargo:rerun-if-env-changed=CLANG");
    for dir in ["abi", "sched", "forward", "telemetry", "bpf"] {
        println!("cargo:rerun-if-changed={}", root.join(dir).display());
    }
    let clang = env::var("CLANG").unwrap_or_else(|_| find_clang());
    let source = root.join(source);
    println!("cargo:rerun-if-changed={}", source.display());
    run(&clang, &libbpf, options, &source, &out.join(format!("{object}.bpf.o")));
}

fn find_clang() -> String {
    let runs = |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    match CLANGS.iter().find(runs) {
        Some(name) => (*name).to_owned(),
        None => panic!("no clang found to compile the BPF programs: run scripts/setup build, or set CLANG"),
    }
}

fn run(clang: &str, libbpf: &str, options: &[&str], source: &Path, object: &Path) {
    let status = Command::new(clang)
        .args(["-g", "-O2", "-mcpu=v3", "-target", "bpf", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .arg("-fdebug-prefix-map=".to_owned() + &env::var("CARGO_MANIFEST_DIR").unwrap_or_default() + "=.")
        .args(options)
        .args(["-I", libbpf, "-c"])
        .arg(source)
        .arg("-o")
        .arg(object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} {}: {status}", source.display()),
        Err(error) => panic!("{clang}: {error}"),
    }
}
