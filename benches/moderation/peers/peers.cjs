// mint-filter and fastscan, as far as they are installed.
'use strict';
const fs = require('fs');
const readline = require('readline');
const directory = process.argv[2];
const lines = name => fs.readFileSync(`${directory}/${name}`, 'utf8').split('\n');
const words = lines('words.txt');
const texts = [lines('texts0.txt'), lines('texts1.txt')];

function optional(name) {
  try {
    return require(name);
  } catch {
    return null;
  }
}

const libraries = {};
const mint = optional('mint-filter');
if (mint) {
  const Mint = mint.default || mint.Mint || mint;
  libraries['mint-filter (npm), filter'] = {
    make: () => new Mint(words),
    finds: (filter, text) => filter.filter(text, { replace: false }).words.length > 0,
  };
  libraries['mint-filter (npm), verify'] = { make: () => new Mint(words), finds: (filter, text) => !filter.verify(text) };
}
const scan = optional('fastscan');
if (scan) {
  const Scanner = scan.default || scan;
  libraries['fastscan (npm)'] = {
    make: () => new Scanner(words),
    finds: (scanner, text) => scanner.search(text, { quick: true }).length > 0,
  };
}
console.log(Object.keys(libraries).join('\t'));

const seconds = begun => Number(process.hrtime.bigint() - begun) / 1e9;
readline.createInterface({ input: process.stdin }).on('line', line => {
  const [action, name, length] = line.split('\t');
  const library = libraries[name];
  if (action === 'build') {
    library.made = null;
    const before = process.memoryUsage().rss;
    const begun = process.hrtime.bigint();
    library.made = library.make();
    const time = seconds(begun);
    console.log(`${time} ${Math.max(0, process.memoryUsage().rss - before)}`);
  } else {
    const begun = process.hrtime.bigint();
    let found = 0;
    for (const text of texts[length]) found += library.finds(library.made, text) ? 1 : 0;
    console.log(`${found} ${seconds(begun)}`);
  }
});
