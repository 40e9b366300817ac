/**
 * What every part of the acceptance shares: a line, and how to run what proves it.
 */
import { execFile, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { type AddressInfo, createServer } from "node:net"
import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** One promise, whether it holds, and the figure that says so. */
export interface Line {
  readonly line: string
  readonly pass: boolean
  readonly figure: string
}

export const root = fileURLToPath(new URL("..", import.meta.url))

/** The result of a command run in the project. */
export interface Ran {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
  readonly seconds: number
}

/** Runs a command of the project without a shell, in plain text. */
export const run = (
  command: string,
  args: ReadonlyArray<string>,
  options: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string; readonly timeout?: number } = {}
): Ran => {
  const started = performance.now()
  const { status, stderr, stdout } = spawnSync(command, [...args], {
    cwd: options.cwd ?? root,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1", ...options.env },
    maxBuffer: 256 * 1024 * 1024,
    timeout: options.timeout ?? 900_000
  })
  return { status: status ?? -1, stdout, stderr, seconds: (performance.now() - started) / 1000 }
}

/** Runs a script of the project with the Node that runs this. */
export const node = (args: ReadonlyArray<string>, options?: Parameters<typeof run>[2]): Ran =>
  run(process.execPath, args, options)

/** Runs a script of the project with the Node that runs this, beside other ones. */
export const nodeBeside = (
  args: ReadonlyArray<string>,
  options: { readonly timeout: number; readonly env?: NodeJS.ProcessEnv }
): Promise<Ran> => {
  const started = performance.now()
  const env = { ...process.env, NO_COLOR: "1", ...options.env }
  const { timeout } = options
  return new Promise((resolve) => {
    const settings = { cwd: root, env, timeout, maxBuffer: 256 * 1024 * 1024 }
    const child = execFile(process.execPath, [...args], settings, (_, stdout, stderr) =>
      resolve({ status: child.exitCode ?? -1, stdout, stderr, seconds: (performance.now() - started) / 1000 })
    )
  })
}

/** Runs test files with the counts they log, and with the slow cases that `npm test` leaves to the long run. */
export const vitest = (files: ReadonlyArray<string>, options?: { readonly timeout?: number }): Ran =>
  node(["node_modules/vitest/vitest.mjs", "run", "--silent=false", ...files], { env: { LONG_RUN: "1" }, ...options })

/**
 * Runs a test file in a process for each core, each of which takes its share of the cases (`test/support/longRun.ts`).
 * Returns what all of them printed, and the status of one that failed.
 */
export const vitestShared = async (file: string, timeout: number): Promise<Ran> => {
  const count = Math.min(availableParallelism(), 8)
  const share = (index: number) => {
    const env = { LONG_RUN: "1", SHARE: `${index}/${count}` }
    return nodeBeside(["node_modules/vitest/vitest.mjs", "run", "--silent=false", file], { env, timeout })
  }
  const all = await Promise.all(Array.from({ length: count }, (_, index) => share(index)))
  return {
    status: all.find(({ status }) => status !== 0)?.status ?? 0,
    stdout: all.map(({ stdout }) => stdout).join("\n"),
    stderr: all.map(({ stderr }) => stderr).join("\n"),
    seconds: Math.max(...all.map(({ seconds }) => seconds))
  }
}

/**
 * What a run of tests says of those that failed, and where they left evidence, to stand behind its figure; nothing where
 * all passed.
 */
export const failures = ({ stderr }: Ran): string => {
  const found = (pattern: RegExp) => new Set([...stderr.matchAll(pattern)].map((match) => match[1] ?? ""))
  const names = [...found(/^ FAIL {2}(.*)$/gm)].map((name) => `; failed: ${name}`)
  return names.concat([...found(/: (evidence in \S+?):? /g)].map((where) => `; ${where}`)).join("")
}

/** The tests of some files as one line: how many passed, and that none failed or was passed over. */
export const tested = (line: string, files: ReadonlyArray<string>): Line => {
  const ran = vitest(files)
  const summary = /Tests\s+(.*)/.exec(ran.stdout)?.[1] ?? "no tests"
  const pass = ran.status === 0 && /\d+ passed/.test(summary) && !/failed|skipped|todo/.test(summary)
  return { line, pass, figure: `${summary.trim()} in ${ran.seconds.toFixed(1)} s${failures(ran)}` }
}

/**
 * The vectors of some files: how many ran, and that none was skipped. Each
 * runner prints `name: N run, M skipped`.
 */
export const vectors = (line: string, files: ReadonlyArray<string>): Line => {
  const ran = vitest(files)
  const counts = [...ran.stdout.matchAll(/([\w.-]+): (\d+) run, (\d+) skipped/g)]
  const total = (index: number) => counts.reduce((sum, count) => sum + Number(count[index]), 0)
  const pass = ran.status === 0 && counts.length >= files.length && total(2) > 0 && total(3) === 0
  return { line, pass, figure: `${total(2)} run, ${total(3)} skipped, in ${counts.length} files${failures(ran)}` }
}

/** A line about files; one that is missing fails it, since the runner would pass over it. */
export const ofFiles = (
  prove: (line: string, files: ReadonlyArray<string>) => Line,
  line: string,
  files: ReadonlyArray<string>
): Line => {
  const missing = files.filter((file) => !existsSync(join(root, file)))
  return missing.length > 0 ? { line, pass: false, figure: `missing: ${missing.join(", ")}` } : prove(line, files)
}

/** A count that tests print as `name: N`, added up over what they print, and the least it must be. */
export const counted = (line: string, files: ReadonlyArray<string>, word: string, least: number): Line =>
  ofFiles(
    (line, files) => {
      const ran = vitest(files)
      const found = [...ran.stdout.matchAll(new RegExp(`${word}: (\\d+)`, "g"))]
      const sum = found.reduce((sum, match) => sum + Number(match[1]), 0)
      return { line, pass: ran.status === 0 && sum >= least, figure: `${sum} (at least ${least})${failures(ran)}` }
    },
    line,
    files
  )

/** The tests of some files as one line, where the files exist. */
export const existing = (line: string, files: ReadonlyArray<string>): Line => ofFiles(tested, line, files)

/** A folder that is gone when `body` is over. */
export const inFolder = async <A>(body: (folder: string) => Promise<A> | A): Promise<A> => {
  const folder = mkdtempSync(join(tmpdir(), "kernai-accept-"))
  try {
    return await body(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** A port that nobody listens on. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, "close")
  return port
}

/** A line that is computed, and fails with what went wrong instead of ending everything. */
export const attempt = async (
  line: string,
  body: () => Promise<Omit<Line, "line">> | Omit<Line, "line">
): Promise<Line> => {
  try {
    return { line, ...(await body()) }
  } catch (error) {
    return { line, pass: false, figure: error instanceof Error ? reasonIn(error.message) : String(error) }
  }
}

/** The first line of a message, and what a browser waited for. */
const reasonIn = (message: string): string => {
  const [first = "", ...rest] = message.split("\n")
  const waited = rest.find((line) => line.includes("waiting for"))
  return waited === undefined ? first : `${first} ${waited.trim()}`
}

interface Row {
  readonly id: string
  readonly name: string
  readonly value: number
  /** Null stands for no bound. */
  readonly bound: number | null
  readonly pass: boolean
}

/** A count with its bound. */
export const atMost = (line: string, value: number, bound: number, more = ""): Line => ({
  line,
  pass: value <= bound,
  figure: `${value} (at most ${bound})${more}`
})

/** The rows of a benchmark as lines, or some of them; it installs its peers when they are not there. */
export const benched = (name: string, ids?: ReadonlyArray<string>): ReadonlyArray<Line> => {
  const { seconds, status, stderr, stdout } = node(["bench/run.ts", "--rows", name], { timeout: 3_600_000 })
  const line = stdout.split("\n").findLast((line) => line.startsWith("["))
  if (status !== 0 || line === undefined)
    return [
      { line: `bench ${name}`, pass: false, figure: `${stderr.trim().slice(0, 300)} after ${seconds.toFixed(0)} s` }
    ]
  const rows: ReadonlyArray<Row> = JSON.parse(line)
  const missing = ids?.filter((id) => !rows.some((row) => row.id === id)) ?? []
  return [
    ...rows.flatMap(({ bound, id, name, pass, value }) =>
      bound === null || ids?.includes(id) === false
        ? []
        : [{ line: name, pass, figure: `${value.toFixed(3)} (at most ${bound})` }]
    ),
    ...missing.map((id) => ({ line: `bench ${name}`, pass: false, figure: `no row ${id}` }))
  ]
}
