/** What tries to leave a workspace, and what it leaves behind: nothing. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { WorkspaceSuite } from "kernai/testing"
import { Workspace } from "kernai/workspace"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { folder, has, opened } from "./folders.ts"
import { sandboxEscapes } from "./sandboxEscapes.ts"

const secret = `secret-${Math.random().toString(36).slice(2)}`

/** A folder outside of every workspace, with a secret in it. */
const outside = Effect.map(folder, (path) => {
  writeFileSync(join(path, "secret.txt"), secret)
  mkdirSync(join(path, "folder"))
  return path
})

const tree = (path: string): ReadonlyArray<string> =>
  readdirSync(path, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const stat = lstatSync(join(path, name))
      return `${name} ${stat.mode} ${stat.isFile() ? readFileSync(join(path, name), "utf8") : ""}`
    })

// ---------------------------------------------------------------- links

/** Links in a workspace, by what leads out: each name is tried in every way. */
const links = (out: string): ReadonlyArray<readonly [name: string, target: string, path: string]> => [
  ["file", join(out, "secret.txt"), "file"],
  ["folder", out, "folder/secret.txt"],
  ["folder-of-folder", join(out, "folder"), "folder-of-folder/../secret.txt/../../folder-of-folder/new.txt"],
  ["up", "..", "up/anything.txt"],
  ["far-up", "../../../../../../../..", "far-up/etc/passwd"],
  ["slash", "/", `slash${out}/secret.txt`],
  ["dot-dot-slash", "./../", "dot-dot-slash/x"],
  ["proc", "/proc", "proc/self/environ"],
  ["proc-self", "/proc/self", "proc-self/root/etc/passwd"],
  ["proc-root", "/proc/self/root", "proc-root/etc/passwd"],
  ["proc-cwd", "/proc/self/cwd", "proc-cwd/package.json"],
  ["proc-fd", "/proc/self/fd", "proc-fd/0"],
  ["device", "/dev/zero", "device"],
  ["terminal", "/dev/tty", "terminal"],
  ["etc", "/etc", "etc/passwd"],
  ["one", "two", "one"],
  ["two", "one", "two"],
  ["self", "self", "self/self/x"],
  ["chain-1", "chain-2", "chain-1/secret.txt"],
  ["chain-2", "chain-3", "chain-2/secret.txt"],
  ["chain-3", out, "chain-3/secret.txt"],
  ["dangling", join(out, "absent", "new.txt"), "dangling/x"],
  ["inner/deep", "../../up/up", "inner/deep/x"],
  ["git", ".git/hooks", "git/pre-commit"]
]

const inLinks = (body: (workspace: Workspace.WorkspaceShape, out: string) => Effect.Effect<void, unknown>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const out = yield* outside
      const workspace = yield* opened((root) => Workspace.layerLocal({ root }))
      for (const name of ["inner", ".git/hooks"]) mkdirSync(join(workspace.root, name), { recursive: true })
      for (const [name, target] of links(out)) symlinkSync(target, join(workspace.root, name))
      symlinkSync(join(out, "secret.txt"), join(workspace.root, "10000"))
      for (let number = 9_999; number > 9_900; number--) {
        symlinkSync(String(number + 1), join(workspace.root, String(number)))
      }
      const before = tree(out)
      yield* body(workspace, out)
      assert.deepStrictEqual(tree(out), before)
    })
  )

describe("links in a workspace", () => {
  it.live("lead no file function out of it", () =>
    inLinks(
      Effect.fnUntraced(function* (workspace, out) {
        const tried = [...links(out).map(([, , path]) => path), "10000", "9950", "9901"]
        for (const path of tried) {
          const all = [
            workspace.read(path),
            workspace.write(path, "escaped"),
            workspace.edit(path, { oldText: secret, newText: "escaped" }),
            workspace.list(path),
            workspace.glob("*", { path }),
            workspace.grep(".", { path }),
            workspace.restore(new Map([[path, new TextEncoder().encode("escaped")]])),
            workspace.restore(new Map([[path, undefined]]))
          ]
          for (const one of all) {
            const result = yield* Effect.result(one)
            const shown = JSON.stringify(result) ?? ""
            assert.isFalse(shown.includes(secret) || shown.includes("root:"), path)
          }
        }
        assert.isFalse(existsSync(join(workspace.root, ".git/hooks/pre-commit")))
        console.log(`escapes: ${tried.length}`)
      })
    )
  )

  it.live("are listed, and not followed by searches", () =>
    inLinks(
      Effect.fnUntraced(function* (workspace) {
        const entries = yield* workspace.list("")
        assert.isTrue(entries.some(({ kind, name }) => kind === "link" && name === "folder"))
        assert.deepStrictEqual((yield* workspace.glob("**/*.txt")).items, [])
        assert.deepStrictEqual((yield* workspace.grep(secret)).items, [])
      })
    )
  )

  it.live(
    "lead nothing out of it while they are replaced between a check and its use",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const out = yield* outside
          const workspace = yield* opened((root) => Workspace.layerLocal({ root }))
          const { root } = workspace
          mkdirSync(join(root, "real"))
          writeFileSync(join(root, "real", "secret.txt"), "inside")
          symlinkSync("real", join(root, "place"))
          const swap = `const fs = require("node:fs"); process.chdir(process.argv[1])
          while (true) for (const target of ["real", process.argv[2]]) {
            fs.symlinkSync(target, "next")
            fs.renameSync("next", "place")
          }`
          yield* Effect.acquireRelease(
            Effect.sync(() => spawn(process.execPath, ["-e", swap, root, out], { stdio: "ignore" })),
            (child) => Effect.sync(() => child.kill("SIGKILL"))
          )
          const before = tree(out)
          let reached = 0
          let refused = 0
          for (let round = 0; round < 150 || reached === 0 || refused === 0; round++) {
            const read = yield* Effect.option(workspace.read("place/secret.txt"))
            if (read._tag === "Some") reached++
            else refused++
            assert.notInclude(JSON.stringify(read), secret)
            yield* Effect.ignore(workspace.write(`place/new-${round}.txt`, "new"))
          }
          assert.deepStrictEqual(tree(out), before)
        })
      ),
    120_000
  )
})

// ---------------------------------------------------------------- commands

const countOf = (sleep: string): number =>
  spawnSync("ps", ["-eo", "args"], { encoding: "utf8" })
    .stdout.split("\n")
    .filter((line) => line === sleep).length

/** Waits until no process sleeps like this, for at most five seconds. Returns how many are left. */
const left = (sleep: string): Effect.Effect<number> =>
  Effect.sync(() => countOf(sleep)).pipe(
    Effect.delay("20 millis"),
    Effect.repeat({ until: (count) => count === 0, times: 200 })
  )

const uniqueSleep = () => `sleep 40${Math.random().toString().slice(1, 12)}`

/** Programs of the host that no command may reach: a server, and a process. */
const host = (): Effect.Effect<
  { readonly port: number; readonly connections: number; readonly victim: ChildProcess },
  never,
  Scope.Scope
> =>
  Effect.acquireRelease(
    Effect.callback((resume) => {
      const victim = spawn("sleep", ["600"], { stdio: "ignore", argv0: "kernai-victim", detached: true })
      const server = createServer((socket) => {
        reach.connections++
        socket.destroy()
      })
      server.listen(0, () => {
        const address = server.address()
        reach.port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed(reach))
      })
      const reach = { port: 0, connections: 0, victim }
    }),
    ({ victim }) => Effect.sync(() => victim.kill("SIGKILL"))
  )

const sandboxes = has("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true")

describe.skipIf(!sandboxes)("commands of a sandbox", () => {
  it.live(
    "reach no file, process or network outside of it, and leave nothing behind",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const out = yield* outside
          const reach = yield* host()
          process.env["KERNAI_ESCAPE_SECRET"] = secret
          const workspace = yield* opened((root) => {
            spawnSync("git", ["init", "-q", root])
            return Workspace.layerSandboxed({ root, processes: 64 })
          })
          const config = readFileSync(join(workspace.root, ".git/config"), "utf8")
          const before = tree(out)
          const sleep = uniqueSleep()
          const through: Array<string> = []
          yield* Effect.forEach(
            sandboxEscapes,
            Effect.fnUntraced(function* (escape) {
              const command = escape
                .replaceAll("SECRET", join(out, "secret.txt").replaceAll(" ", "\\ "))
                .replaceAll("OUT", out.replaceAll(" ", "\\ "))
                .replaceAll("PORT", String(reach.port))
                .replaceAll("VICTIM", String(reach.victim.pid))
                .replaceAll("sleep SLEEP", sleep)
              const { output } = yield* workspace.run(command, { timeout: 3_000 })
              if (output.includes(secret) || output.includes("root:$") || output.length > 1024 * 1024)
                through.push(escape)
            }),
            { concurrency: 2 }
          )
          assert.deepStrictEqual(through, [])
          assert.deepStrictEqual(tree(out), before)
          assert.strictEqual(reach.connections, 0)
          assert.strictEqual(reach.victim.exitCode ?? reach.victim.signalCode, null)
          assert.strictEqual(yield* left(sleep), 0)
          assert.strictEqual(readFileSync(join(workspace.root, ".git/config"), "utf8"), config)
          assert.isFalse(existsSync(join(workspace.root, ".git/hooks/pre-commit")))
          assert.isFalse(existsSync("/usr/bin/kernai-escape"))
          console.log(`escapes: ${sandboxEscapes.length + WorkspaceSuite.escapes.length}`)
        })
      ),
    120_000
  )

  it.live("reach the network and other folders only where they are allowed to", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const out = yield* outside
        const reach = yield* host()
        const workspace = yield* opened((root) => {
          mkdirSync(join(root, "open"))
          return Workspace.layerSandboxed({ root, network: true, readable: [out], writable: ["open"] })
        })
        const read = yield* workspace.run(`cat '${out}/secret.txt'; echo x > '${out}/new'`)
        assert.include(read.output, secret)
        assert.isFalse(existsSync(join(out, "new")))
        yield* workspace.run(`exec 5<>/dev/tcp/127.0.0.1/${reach.port}; read -t 1 -u 5`)
        assert.strictEqual(reach.connections, 1)
        yield* workspace.run("echo x > open/a.txt; echo x > closed.txt")
        assert.deepStrictEqual(readdirSync(workspace.root), ["open"])
        assert.strictEqual((yield* Effect.flip(workspace.write("closed.txt", "x"))).reason, "read_only")
        yield* workspace.write("open/b.txt", "x")
      })
    )
  )
})

// ---------------------------------------------------------------- interruptions

const layers = {
  local: (root: string) => Workspace.layerLocal({ root }),
  ...(sandboxes ? { sandboxed: (root: string) => Workspace.layerSandboxed({ root }) } : {})
}

for (const [name, layer] of Object.entries(layers)) {
  describe(`commands of a ${name} workspace`, () => {
    it.live(
      "leave no process after 100 interruptions",
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const workspace = yield* opened(layer)
            const sleep = uniqueSleep()
            const command = `${sleep} & setsid ${sleep} & nohup bash -c '${sleep} & wait' & wait`
            yield* Effect.forEach(
              Array.from({ length: 100 }, (_, index) => index * 2),
              (time) => Effect.timeoutOption(workspace.run(command), time),
              { concurrency: 2 }
            )
            const count = yield* left(sleep)
            assert.strictEqual(count, 0)
            console.log(`interruptions of a ${name} workspace: 100, processes left: ${count}`)
          })
        ),
      120_000
    )

    it.live("end in the background when their workspace is closed", () =>
      Effect.gen(function* () {
        const sleep = uniqueSleep()
        yield* Effect.scoped(
          Effect.gen(function* () {
            const workspace = yield* opened(layer)
            const start = workspace.start(
              `${sleep} & setsid ${sleep} & nohup bash -c '${sleep} & wait' & echo up; wait`
            )
            const ids = yield* Effect.replicateEffect(start, 3)
            for (const id of ids) {
              const output = Effect.delay(workspace.output(id), "50 millis")
              yield* Effect.repeat(output, { until: ({ text }) => text.includes("up") })
            }
            assert.isAtLeast(countOf(sleep), 3)
          })
        )
        assert.strictEqual(yield* left(sleep), 0)
      })
    )

    it.live("end when the process that runs them is killed", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const root = yield* folder
          const sleep = uniqueSleep()
          const child = yield* Effect.acquireRelease(
            Effect.sync(() =>
              spawn(
                process.execPath,
                ["--conditions=kernai-source", join(import.meta.dirname, "killedHost.ts"), name, root, sleep],
                { stdio: ["ignore", "pipe", "inherit"] }
              )
            ),
            (child) => Effect.sync(() => child.kill("SIGKILL"))
          )
          yield* Effect.callback<void>((resume) => {
            child.stdout.once("data", () => resume(Effect.void))
          })
          assert.isAbove(countOf(sleep), 1)
          child.kill("SIGKILL")
          assert.strictEqual(yield* left(sleep), 0)
        })
      )
    )
  })
}
