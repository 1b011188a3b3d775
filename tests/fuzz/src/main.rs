//! The program that libFuzzer drives, as `cargo xtask fuzz` builds it; else, the list of targets.
//!
//! The environment names the target in `BOTMESH_FUZZ_TARGET` and, in `BOTMESH_FUZZ_CORPUS`, the
//! directory to which its seeds are written before the fuzzer reads it.

#![cfg_attr(fuzzing, no_main)]

#[cfg(not(fuzzing))]
fn main() {
    for target in botmesh_fuzz::TARGETS {
        println!("{}", target.name);
    }
}

#[cfg(fuzzing)]
static TARGET: std::sync::LazyLock<botmesh_fuzz::Target> = std::sync::LazyLock::new(|| {
    let name = std::env::var("BOTMESH_FUZZ_TARGET").unwrap_or_default();
    let found = botmesh_fuzz::Target::named(&name);
    found.unwrap_or_else(|| panic!("BOTMESH_FUZZ_TARGET is {name:?}, which is no target"))
});

#[cfg(fuzzing)]
fn write_seeds() -> std::io::Result<()> {
    let Some(directory) = std::env::var_os("BOTMESH_FUZZ_CORPUS") else { return Ok(()) };
    let directory = std::path::PathBuf::from(directory);
    std::fs::create_dir_all(&directory)?;
    for (number, seed) in (TARGET.seeds)().into_iter().enumerate() {
        std::fs::write(directory.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: if let Err(error) = write_seeds() {
        panic!("the seeds cannot be written: {error}")
    },
    |bytes: &[u8]| {
        (TARGET.run)(bytes);
    }
);
