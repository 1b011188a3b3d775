//! Tells the compiler that the fuzzer's build is marked by a cfg.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
}
