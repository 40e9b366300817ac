import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Path, Schema, Sink, Stream } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { Model, ModelRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { fileURLToPath } from "node:url"
import { codeOf, CommandFailed } from "../../src/cli/exit.ts"
import { runMatrix } from "../../src/cli/matrix.ts"
import type { ScenarioFlags } from "../../src/cli/commands/scenarioFlags.ts"
import { runScenarios } from "../../src/cli/runScenarios.ts"
import { call, kernai, memoryScreen } from "./support.ts"

const catalogue = fileURLToPath(new URL("../../examples/scenarios", import.meta.url))

const options: ScenarioFlags = {
  paths: [catalogue],
  store: undefined,
  create: false,
  model: undefined,
  dialect: undefined,
  log: undefined,
  json: false,
  color: undefined
}

const scenario = (name: string, body: string) => `
import { Scenario } from "kernai/testing"
export default Scenario.make({ name: "${name}", instructions: "You test.", input: "Go.", ${body} })
`

const says = "offline: { root: ['<block type=\"final\">ok</block>'] }"

/** A folder with these files. */
const folder = (files: { readonly [name: string]: string }) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const directory = yield* fs.makeTempDirectoryScoped()
    for (const [name, text] of Object.entries(files)) yield* fs.writeFileString(path.join(directory, name), text)
    return directory
  })

/** Starts no process: returns what each would print. */
const saying = (next: () => string) =>
  ChildProcessSpawner.make(() =>
    Effect.sync(() =>
      ChildProcessSpawner.makeHandle({
        pid: ChildProcessSpawner.ProcessId(1),
        exitCode: Effect.succeed(ChildProcessSpawner.ExitCode(0)),
        isRunning: Effect.succeed(false),
        kill: () => Effect.void,
        unref: Effect.succeed(Effect.void),
        stdin: Sink.drain,
        stdout: Stream.encodeText(Stream.make(next())),
        stderr: Stream.empty,
        all: Stream.empty,
        getInputFd: () => Sink.drain,
        getOutputFd: () => Stream.empty
      })
    )
  )

const run = (more: Partial<ScenarioFlags>) => {
  const screen = memoryScreen()
  return Effect.map(
    Effect.result(Effect.provide(runScenarios({ ...options, ...more }), Layer.merge(screen.layer, NodeServices.layer))),
    (result) => ({
      screen,
      failure: result._tag === "Failure" && result.failure instanceof CommandFailed ? result.failure : undefined
    })
  )
}

describe("kernai scenario run", () => {
  it.live("runs the examples offline, and shows each scenario as a tree with times", () =>
    Effect.gen(function* () {
      const { failure, screen } = yield* run({})
      assert.isUndefined(failure)
      assert.strictEqual(screen.out(), "16 ok, 0 failed, 0 skipped\n")
      const lines = screen.progress().split("\n")
      assert.strictEqual(lines.filter((line) => line.startsWith("ok ")).length, 16)
      assert.match(screen.progress(), /├─ task payments {2}\d+ ms {2}pool exhausted at 09:02/)
      assert.include(screen.progress(), "plan refused  cyclic")
      assert.match(screen.progress(), /skill recognize_text {2}\d+ ms {2}To pay until 30 June: 240 EUR/)
      assert.include(screen.progress(), "Skill 'look_at_photo' requires vision")
    })
  )

  it.live("prints a JSON line for each scenario, with the file of its log", () =>
    Effect.gen(function* () {
      const log = yield* folder({})
      const { screen } = yield* run({ paths: [`${catalogue}/01-triage.ts`], json: true, log })
      const line: { readonly log: string; readonly [key: string]: unknown } = JSON.parse(screen.out())
      assert.deepInclude(line, { scenario: "triage", status: "ok", ok: true, steps: 3 })
      const fs = yield* FileSystem.FileSystem
      assert.isTrue(yield* fs.exists(line.log))
      assert.notProperty(line, "recording")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("runs a scenario once when its file exports it by several names", () =>
    Effect.gen(function* () {
      const text = scenario("a", says).replace("export default", "export const a =")
      const directory = yield* folder({ "a.ts": `${text}export default a\nexport const all = [a]\n` })
      const { failure, screen } = yield* run({ paths: [directory] })
      assert.isUndefined(failure)
      assert.strictEqual(screen.out(), "1 ok, 0 failed, 0 skipped\n")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("ends with 1 when a scenario fails, and with 2 when none could run", () =>
    Effect.gen(function* () {
      const failing = yield* folder({
        "a.ts": scenario("a", says),
        "b.ts": scenario("b", `${says}, expect: () => ["no"]`)
      })
      const first = yield* run({ paths: [failing] })
      assert.deepInclude(first.failure, { code: 1, reason: "1 ok, 1 failed, 0 skipped" })
      assert.include(first.screen.progress(), "unexpected_result: no")
      const skipping = yield* folder({
        "a.ts": scenario("a", 'offline: { root: [] }, mcp: "none.yml"'),
        "b.ts": scenario("b", `${says}, mcp: { servers: { gone: { command: "kernai-no-such-program" } } }`)
      })
      const second = yield* run({ paths: [skipping] })
      assert.deepInclude(second.failure, { code: 2, reason: "0 ok, 0 failed, 2 skipped" })
      assert.include(second.screen.progress(), "SKIPPED")
      assert.match(second.screen.progress(), /MCP server 'gone' is /)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  const named: ReadonlyArray<readonly [provider: string, model: string, reason: string]> = [
    ["nobody", "", "has no default model: set MODEL too, or use one of anthropic, google, ollama, openai"],
    ["openai", "", "openai/gpt-4o needs it"],
    ["openai", "gpt", "openai/gpt needs it"],
    ["nobody", "anthropic/claude", "anthropic/claude needs it"]
  ]
  it.live.each(named)("takes its model from PROVIDER %j and MODEL %j (BP-181)", ([PROVIDER, MODEL, reason]) =>
    Effect.gen(function* () {
      Object.assign(process.env, { PROVIDER, MODEL })
      const { code, error } = yield* Effect.ensuring(
        kernai(["scenario", "run", `${catalogue}/01-triage.ts`, "--no-logs"]),
        Effect.sync(() => {
          delete process.env["PROVIDER"]
          delete process.env["MODEL"]
        })
      )
      assert.strictEqual(code, 2)
      assert.include(error, reason)
    })
  )

  it.live("runs a file in any folder that imports public modules by their paths", () =>
    Effect.gen(function* () {
      const directory = yield* folder({
        "a.ts": `
import * as Media from "kernai/Media"
import * as Scenario from "kernai/testing/Scenario"
const name = await import("kernai/internal/loop").then(() => "open", () => "closed")
const letter = Media.fromBytes(new Uint8Array(1), "text/plain")
export default Scenario.make({ name, instructions: "You test.", input: ["Go.", letter], ${says} })
`
      })
      const { code, error } = yield* call(["scenario", "run", directory, "--no-logs"])
      assert.strictEqual(code, 0)
      assert.match(error, /^ok {6}closed/m)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("reports the problem of a path, a file or its code, and runs nothing", () =>
    Effect.gen(function* () {
      const directory = yield* folder({
        "empty.ts": "export {}",
        "broken.ts": 'throw new Error("it broke")',
        "_helper.ts": "export {}"
      })
      const said = (path: string) => Effect.map(run({ paths: [path] }), ({ failure }) => failure)
      assert.include((yield* said(`${directory}/none.ts`))?.reason, "cannot be read")
      assert.include((yield* said(`${directory}/empty.ts`))?.reason, "exports no scenario")
      assert.include((yield* said(`${directory}/broken.ts`))?.reason, "it broke")
      const bare = yield* folder({ "_helper.ts": "export {}" })
      assert.deepInclude(yield* said(bare), { code: 2 })
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("kernai scenario matrix", () => {
  it.live(
    "reports a file as failed if one of its scenarios fails, and as an error if its process dies",
    () =>
      Effect.gen(function* () {
        const also = (body: string) =>
          `export const also = Scenario.make({ name: "also", instructions: "", input: "", ${body} })`
        const fails = `${says}, expect: () => ["it is wrong"]`
        const directory = yield* folder({
          "a.ts": `${scenario("z", says)}${also(fails)}`,
          "b.ts": `import { Effect } from "effect"${scenario("b", "offline: Effect.sync(() => process.exit(7))")}${also(says)}`
        })
        const { code, error } = yield* call(["scenario", "matrix", directory, "--log", `${directory}/logs`])
        assert.strictEqual(code, 1)
        assert.match(error, /^fail {5}a with script\/whole .*it is wrong/m)
        assert.match(error, /^error {4}b with script\/whole/m)
      }).pipe(Effect.provide(NodeServices.layer)),
    60_000
  )

  it.live(
    "writes its report even if every pair crashed",
    () =>
      Effect.gen(function* () {
        const directory = yield* folder({ "a.ts": `process.exit(7)` })
        const logs = `${directory}/kept/logs`
        const ended = yield* call(["scenario", "matrix", directory, "-m", "script/chars", "--log", logs])
        assert.strictEqual(ended.code, 1)
        assert.include(ended.out, "0 ok, 0 failed, 0 skipped, 1 crashed")
        const fs = yield* FileSystem.FileSystem
        const kept = (yield* fs.readDirectory(logs)).join()
        assert.match(kept, /^matrix_\w+\.json$/)
        assert.deepInclude(JSON.parse(yield* fs.readFileString(`${logs}/${kept}`)), { models: ["script/chars"] })
      }).pipe(Effect.provide(NodeServices.layer)),
    60_000
  )

  it.live("has the exit code of its pairs, and ignores output that is not a report", () =>
    Effect.gen(function* () {
      const directory = yield* folder({
        "a.ts": "",
        "b.mjs": "",
        "notes.md": "",
        "a.d.ts": "",
        "_a.ts": "",
        ".a.ts": ""
      })
      const matrix = Effect.fnUntraced(function* (...says: readonly [a: string, b: string]) {
        const left: Array<string> = [...says]
        const screen = memoryScreen()
        const exit = yield* runMatrix({
          paths: [directory],
          store: undefined,
          create: false,
          model: ["script/whole"],
          dialects: false,
          concurrency: 1,
          timeout: 60,
          log: `${directory}/logs`,
          json: false,
          color: undefined
        }).pipe(
          Effect.provideService(
            ChildProcessSpawner.ChildProcessSpawner,
            saying(() => left.shift() ?? "")
          ),
          Effect.provide(screen.layer),
          Effect.exit
        )
        return `${codeOf(exit)}: ${/^\d+ ok.*crashed/m.exec(screen.out())?.[0]}`
      })
      const ok = `{"status":"ok","cost_usd":null}\n`
      const skipped = `{"status":"skipped"}\n`
      assert.strictEqual(yield* matrix(`7\nno {\n${skipped}${ok}`, ok), "0: 2 ok, 0 failed, 0 skipped, 0 crashed")
      assert.strictEqual(yield* matrix(skipped, ok), "0: 1 ok, 0 failed, 1 skipped, 0 crashed")
      assert.strictEqual(yield* matrix(skipped, skipped), "2: 0 ok, 0 failed, 2 skipped, 0 crashed")
      assert.strictEqual(yield* matrix(`${ok}{"status":"fail"}`, ok), "1: 1 ok, 1 failed, 0 skipped, 0 crashed")
      assert.strictEqual(yield* matrix(`{"status":"fine"}`, ok), "1: 1 ok, 0 failed, 0 skipped, 1 crashed")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live(
    "runs each pair in a process of its own: a crash is an error of that pair only (BP-185)",
    () =>
      Effect.gen(function* () {
        const directory = yield* folder({
          "a.ts": scenario("a", says),
          "b.ts": `process.exit(7)`
        })
        const other = yield* folder({ "a.ts": scenario("a", `${says}, mcp: "none.yml"`) })
        const args = ["scenario", "matrix", directory, other, "-m", "script/whole", "--log", `${directory}/logs`]
        const { code, error, out } = yield* call(args)
        assert.strictEqual(code, 1)
        assert.match(error, /^ok {7}a with script\/whole/m)
        assert.match(error, /^error {4}b with script\/whole/m)
        assert.deepStrictEqual(
          out.match(/^[ab] +(ok|error|skipped)/gm)?.map((row) => row.replace(/ +/, " ")),
          ["a ok", "b error", "a skipped"]
        )
        assert.include(out, "1 ok, 0 failed, 1 skipped, 1 crashed")
        const fs = yield* FileSystem.FileSystem
        const files = yield* fs.readDirectory(`${directory}/logs`)
        const matrix = files.find((name) => name.startsWith("matrix_")) ?? ""
        const report: { readonly cells: ReadonlyArray<object>; readonly [key: string]: unknown } = JSON.parse(
          yield* fs.readFileString(`${directory}/logs/${matrix}`)
        )
        assert.deepInclude(report, { totals: { ok: 1, fail: 0, skipped: 1, error: 1 } })
        assert.deepInclude(report.cells[1], { scenario: "b", model: "script/whole", status: "error", log: null })
      }).pipe(Effect.provide(NodeServices.layer)),
    60_000
  )

  it.live(
    "measures each model in both dialects, and writes the one it speaks better as data for a registry",
    () =>
      Effect.gen(function* () {
        const expects = `expect: ({ result }) => (result === "ok" ? [] : ["not ok"])`
        const directory = yield* folder({ "a.ts": scenario("a", `${says}, ${expects}`) })
        const logs = `${directory}/logs`
        const { code, error, out } = yield* call([
          "scenario",
          "matrix",
          directory,
          "--dialects",
          "-m",
          "script/whole",
          "--log",
          logs
        ])
        assert.strictEqual(code, 0)
        assert.match(error, /^ok {7}a with blocks script\/whole/m)
        assert.match(error, /^fail {5}a with tools script\/whole/m)
        assert.match(out, /^script\/whole: blocks 1 of 1 ok, 1 turns, \d+ tokens; tools 0 of 1 ok; blocks$/m)
        const fs = yield* FileSystem.FileSystem
        const name = (yield* fs.readDirectory(logs)).find((name) => name.startsWith("dialects_")) ?? ""
        const written = yield* Schema.decodeEffect(Schema.fromJsonString(Written))(
          yield* fs.readFileString(`${logs}/${name}`)
        )
        assert.deepStrictEqual(
          written.models.map(({ dialect, id, provider }) => [provider, id, dialect]),
          [["script", "whole", "blocks"]]
        )
        const registry = ModelRegistry.layer({ script: MockProvider.make() }, { models: written.models })
        const { model } = yield* ModelRegistry.ModelRegistry.use((registry) => registry.resolve("script/whole")).pipe(
          Effect.provide(registry)
        )
        assert.strictEqual(Model.dialectOf(model), "blocks")
      }).pipe(Effect.provide(NodeServices.layer)),
    60_000
  )
})

const Written = Schema.Struct({ measured_at: Schema.String, models: Schema.Array(Model.Model) })
