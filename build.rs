//! Records commit, target and compiler for `yarrow version`.
//!
//! It uses no network. Builds from an archive have no commit unless `YARROW_COMMIT` names it. Only release builds ask git,
//! so that a commit does not make every test compile again.

#![allow(clippy::print_stdout, reason = "build scripts print instructions to cargo")]

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=YARROW_COMMIT");
    let profile = variable("PROFILE");
    let commit = env::var("YARROW_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = commit.or_else(|| release_commit(&profile)).unwrap_or_else(|| "unknown".into());
    let compiler = first_line(Command::new(variable("RUSTC")).arg("--version")).unwrap_or_default();
    // The prefix is not YARROW_, because `cargo run` passes these on to the program, which reads YARROW_ as settings.
    for (name, value) in [("COMMIT", commit), ("PROFILE", profile), ("TARGET", variable("TARGET")), ("RUSTC", compiler)]
    {
        println!("cargo:rustc-env=BUILT_{name}={value}");
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

fn release_commit(profile: &str) -> Option<String> {
    if profile != "release" {
        return None;
    }
    // An archive unpacked inside another repository does not belong to it.
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let here = variable("CARGO_MANIFEST_DIR");
    if Path::new(&top).canonicalize().ok()? != Path::new(&here).canonicalize().ok()? {
        return None;
    }
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        println!("cargo:rerun-if-changed={path}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    first_line(Command::new("git").args(arguments))
}

/// Returns the first line of a command's output if it succeeds.
fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}
