//! Notes what the program is built from, for `yarrow version`.
//!
//! It asks nothing of the network, and fails at nothing: built from an archive the commit is unknown, unless
//! `YARROW_COMMIT` says it. Git is asked for release builds only, so that a commit does not make every test compile
//! anew.

#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=YARROW_COMMIT");
    let profile = variable("PROFILE");
    let commit = env::var("YARROW_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = commit.or_else(|| commit_of_release(&profile)).unwrap_or_else(|| "unknown".into());
    // The names do not begin like settings: cargo hands them to the program that it runs.
    let compiler = said(Command::new(variable("RUSTC")).arg("--version")).unwrap_or_default();
    for (name, value) in [("COMMIT", commit), ("PROFILE", profile), ("TARGET", variable("TARGET")), ("RUSTC", compiler)]
    {
        println!("cargo:rustc-env=BUILT_{name}={value}");
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

fn commit_of_release(profile: &str) -> Option<String> {
    if profile != "release" {
        return None;
    }
    // An archive that was unpacked below some other repository is not of that repository.
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
    said(Command::new("git").args(arguments))
}

/// The first line that a command says, if it succeeds.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}
