// Commands that install packages, for each runtime.

const runtimes = [
  ["Node", "npm install", (word) => word],
  ["Bun", "bun add", (word) => (word === "--save-dev" ? "--dev" : word)],
  ["Deno", "deno add", (word) => (word === "--save-dev" ? "--dev" : `npm:${word}`)]
]

/** Lines of `npm install`, as each runtime has them; undefined if there are other lines among them. */
export const installs = (text) => {
  const lines = text.trim().split("\n")
  if (!lines.every((line) => line.startsWith("npm install "))) return undefined
  return runtimes.map(([runtime, command, wordOf]) => ({
    runtime,
    text: lines.map((line) => [command, ...line.split(" ").slice(2).map(wordOf)].join(" ")).join("\n")
  }))
}
