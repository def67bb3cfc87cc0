//! Compiles the C between DPDK's inline functions and Rust, and links DPDK.

fn main() {
    println!("cargo:rerun-if-changed=src/shim.c");
    let found = pkg_config::Config::new().atleast_version("22.11").probe("libdpdk");
    let dpdk = found.unwrap_or_else(|error| {
        eprintln!("{error}");
        eprintln!("sluice-dpdk needs DPDK 22.11 or newer: install libdpdk-dev and pkg-config (`make dpdk` does)");
        std::process::exit(1);
    });
    let mut build = cc::Build::new();
    build.file("src/shim.c").warnings(true).extra_warnings(true);
    dpdk.include_paths.iter().for_each(|path| {
        // Its inline functions are not ours to warn of.
        build.flag("-isystem").flag(path);
    });
    // The instructions that DPDK's headers take for granted.
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") {
        build.flag("-msse4.2");
    }
    build.flag("-include").flag("rte_config.h").compile("sluice_dpdk_shim");
}
