//! Generates the Rust copy of `abi/`, and of the states of the disciplines in `sched/`, with bindgen, and compiles the names of its lists.

use std::{env, path::PathBuf};

fn main() {
    let abi = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../abi");
    let sched = abi.join("../sched");
    [&abi, &sched].iter().for_each(|dir| println!("cargo:rerun-if-changed={}", dir.display()));
    println!("cargo:rerun-if-changed=src/names.c");
    cc::Build::new().file("src/names.c").include(&abi).warnings(true).extra_warnings(true).compile("sluice_names");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("abi.rs");
    bindgen::Builder::default()
        .header(abi.join("sched.h").to_string_lossy())
        .header(abi.join("addresses_trace.h").to_string_lossy())
        .header(abi.join("backpressure.h").to_string_lossy())
        .header(abi.join("classifier.h").to_string_lossy())
        .header(abi.join("each_host.h").to_string_lossy())
        .header(abi.join("forward.h").to_string_lossy())
        .header(abi.join("hierarchy_trace.h").to_string_lossy())
        .header(abi.join("instance.h").to_string_lossy())
        .header(abi.join("pipes.h").to_string_lossy())
        .header(abi.join("port_limit.h").to_string_lossy())
        .header(abi.join("shared_credit.h").to_string_lossy())
        .header(abi.join("shared_tree.h").to_string_lossy())
        .header(abi.join("telemetry.h").to_string_lossy())
        .header(abi.join("trace.h").to_string_lossy())
        .header(abi.join("tree_changes.h").to_string_lossy())
        .header(abi.join("watch.h").to_string_lossy())
        .header(abi.join("wire.h").to_string_lossy())
        // For what disciplines keep of classes and schedulers.
        .header(sched.join("registry.h").to_string_lossy())
        .allowlist_item("(sl|SL)_.*")
        .blocklist_type("[us](8|16|32|64)|sl_discipline")
        .raw_line("type s16 = i16;")
        .raw_line("type s32 = i32;")
        .raw_line("type s64 = i64;")
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .derive_default(false)
        .derive_copy(true)
        .layout_tests(true)
        .generate()
        .expect("bindgen could not read abi/: is libclang installed? (scripts/setup build)")
        .write_to_file(&out)
        .expect("writing abi.rs");
}
