/**
 * The kernel's promises: from a fresh clone to a finished run.
 */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { attempt, benched, failures, type Line, node, root, run, tested, vectors } from "./support.ts"

const answer = "50% of active users are on the premium plan"

/** A clone in an empty folder, with what it installs itself. */
const fresh = async (body: (folder: string) => Promise<ReadonlyArray<Line>>): Promise<ReadonlyArray<Line>> => {
  const folder = mkdtempSync(join(tmpdir(), "kernai-accept-"))
  // A database that is started as another user has to find its program in here.
  chmodSync(folder, 0o755)
  try {
    const cloned = run("git", ["clone", "--quiet", "--no-hardlinks", root, folder])
    if (cloned.status !== 0) return [{ line: "git clone", pass: false, figure: cloned.stderr.trim() }]
    return await body(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const clone = (folder: string): ReadonlyArray<Line> => {
  const installed = run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder })
  const started = run("npm", ["start"], { cwd: folder })
  const dirty = run("git", ["status", "--porcelain"], { cwd: folder }).stdout.trim()
  const tests = run("npm", ["test"], { cwd: folder })
  const summary = /Tests\s+(.*)/.exec(tests.stdout)?.[1]?.trim() ?? "no tests"
  const duration = Number(/Duration\s+([\d.]+)s/.exec(tests.stdout)?.[1] ?? Number.NaN)
  return [
    { line: "npm ci on a fresh clone", pass: installed.status === 0, figure: `${installed.seconds.toFixed(0)} s` },
    {
      line: "npm start ends with the recorded answer, exit code 0",
      pass: started.status === 0 && started.stdout.includes(answer),
      figure: `exit code ${started.status}, ${started.seconds.toFixed(1)} s`
    },
    { line: "the tree is clean afterwards", pass: dirty === "", figure: dirty === "" ? "clean" : dirty },
    {
      line: "npm test passes",
      pass: tests.status === 0 && /\d+ passed/.test(summary),
      figure: `${summary}${failures(tests)}`
    },
    { line: "its tests take under 90 seconds", pass: duration < 90, figure: `${duration} s` }
  ]
}

const files = (names: ReadonlyArray<string>) => names.map((name) => `test/conformance/${name}.test.ts`)

/** Vector ids and texts belong to tests: none may stand in the sources. */
const untaught = (): Omit<Line, "line"> => {
  const folder = join(root, "test/fixtures/vectors")
  const ids = readdirSync(folder).flatMap((file) =>
    [...readFileSync(join(folder, file), "utf8").matchAll(/"id": ?"([a-z]+-\d{2,})"/g)].map((match) => match[1] ?? "")
  )
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts")
  )
  const texts = sources.map((file) => readFileSync(join(root, "src", file), "utf8"))
  const found = [...new Set(ids)].filter((id) => texts.some((text) => text.includes(`"${id}"`)))
  return {
    pass: ids.length > 50 && found.length === 0,
    figure: `${new Set(ids).size} ids looked for in ${sources.length} files, ${found.length} found`
  }
}

export const kernel = async (): Promise<ReadonlyArray<Line>> => [
  ...(await fresh(async (folder) => clone(folder))),
  vectors("vectors of parser, in every chunking", files(["parser"])),
  vectors(
    "vectors of params, skills, media, instructions, providers, content-blocks, addresses, usage",
    files(["params", "skills", "media", "instructions", "providers", "contentBlocks", "addresses", "usage"])
  ),
  vectors("recorded runs of kernel", files(["kernel"])),
  await attempt("no vector id stands in src", untaught),
  tested("README and examples compile and run", ["test/readme.test.ts", "test/examples.test.ts"]),
  await attempt("a missing key is one line that names the variable", () => {
    const { ANTHROPIC_API_KEY: _, ...env } = process.env
    const ran = node(["bin/kernai.mjs", "run", "--model", "anthropic/claude-sonnet-4-20250514", "hi"], {
      env: { ...env, ANTHROPIC_API_KEY: "" }
    })
    const lines = ran.stderr.trim().split("\n")
    return {
      pass: ran.status !== 0 && lines.length === 1 && ran.stderr.includes("ANTHROPIC_API_KEY"),
      figure: lines[0] ?? ""
    }
  }),
  ...benched("parser"),
  ...benched("loop", ["loop.100.memory", "loop.1000.memory", "loop.growth"]),
  ...benched("tokens"),
  ...benched("runs"),
  ...benched("heap"),
  ...benched("start", ["start.ai", "start.bundle", "start.effectAi"])
]
