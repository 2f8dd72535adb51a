//! Libraries of other languages. Their interpreters get words and texts as files, report which libraries they have, and
//! then receive build and scan commands line by line.

use std::{
    cell::RefCell,
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    rc::Rc,
};

use super::{Library, TEXTS};

/// The interpreters, and their scripts.
const PEERS: &[(&str, &str)] = &[("node", "peers.cjs"), ("python/bin/python3", "peers.py")];

struct Interpreter {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _files: tempfile::TempDir,
}

struct Peer {
    interpreter: Rc<RefCell<Interpreter>>,
    name: String,
    memory: f64,
}

pub fn start(patterns: &[String], texts: &[Vec<String>; TEXTS.len()]) -> Vec<Box<dyn Library>> {
    PEERS.iter().flat_map(|(interpreter, script)| start_one(interpreter, script, patterns, texts)).collect()
}

fn start_one(
    interpreter: &str,
    script: &str,
    patterns: &[String],
    texts: &[Vec<String>; TEXTS.len()],
) -> Vec<Box<dyn Library>> {
    let files = tempfile::tempdir().expect("there is room for files");
    let write = |name: &str, lines: &[String]| fs::write(files.path().join(name), lines.join("\n")).unwrap();
    write("words.txt", patterns);
    for (index, texts) in texts.iter().enumerate() {
        write(&format!("texts{index}.txt"), texts);
    }
    let installed = std::env::var("MODERATION_PEERS").unwrap_or_default();
    let program = if interpreter.contains('/') { format!("{installed}/{interpreter}") } else { interpreter.to_owned() };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/moderation/peers").join(script);
    let mut command = Command::new(&program);
    command.arg(script).arg(files.path()).env("NODE_PATH", format!("{installed}/node_modules"));
    let Ok(mut child) = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        println!("{program} is not installed: its libraries are missing here (benches/moderation/run installs them)");
        return Vec::new();
    };
    let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut interpreter = Interpreter { child, input, output, _files: files };
    let names = interpreter.answer();
    let interpreter = Rc::new(RefCell::new(interpreter));
    let peer = |name: &str| Peer { interpreter: Rc::clone(&interpreter), name: name.to_owned(), memory: 0.0 };
    names.split('\t').filter(|name| !name.is_empty()).map(|name| Box::new(peer(name)) as Box<dyn Library>).collect()
}

impl Interpreter {
    fn ask(&mut self, line: &str) -> Vec<f64> {
        writeln!(self.input, "{line}").expect("the interpreter listens");
        self.answer().split(' ').map(|number| number.parse().expect("it answers in numbers")).collect()
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the interpreter answers");
        line.trim_end().to_owned()
    }
}

impl Library for Peer {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn build(&mut self) -> f64 {
        let answer = self.interpreter.borrow_mut().ask(&format!("build\t{}", self.name));
        // The growth of the process during its first build.
        if self.memory == 0.0 {
            self.memory = answer[1];
        }
        answer[0]
    }

    fn memory(&mut self) -> f64 {
        self.memory
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a count")]
    fn scan(&mut self, length: usize) -> (usize, f64) {
        let answer = self.interpreter.borrow_mut().ask(&format!("scan\t{}\t{length}", self.name));
        (answer[0] as usize, answer[1])
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
