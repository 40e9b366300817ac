import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem, Option, Path, Schema } from "effect"
import { Limits, type Message, Provider, Skill } from "kernai"
import { Scenario } from "kernai/testing"
import { final } from "../support/blocks.ts"
import { finishOf, read, request } from "../support/provider.ts"

const echo = Skill.make("echo", {
  description: "Says it again",
  input: Schema.Struct({ text: Schema.String }),
  effects: "read",
  execute: ({ text }) => Effect.succeed(text)
})

const plan = `<block type="plan">${JSON.stringify({
  goal: "g",
  strategy: "parallel",
  tasks: [
    { id: "a", input: "do a" },
    { id: "b", input: "do b" }
  ]
})}</block>`

const simple = (more: Partial<Scenario.Options> = {}) =>
  Scenario.make({
    name: "simple",
    instructions: "You test.",
    input: "Go.",
    offline: { root: [final("done")] },
    ...more
  })

describe("Scenario.run", () => {
  it.live("plays a scenario offline from its script, with separate lines for every task (BP-180)", () =>
    Effect.gen(function* () {
      const report = yield* Scenario.run(
        simple({
          skills: [echo],
          offline: {
            root: [plan, final("both")],
            tasks: {
              a: [`<block type="command" name="echo">{"text": "A"}</block>`, final("A")],
              b: [final("B")]
            }
          }
        })
      )
      assert.deepInclude(report, {
        status: "ok",
        result: "both",
        failure: null,
        provider: "script",
        model: "whole",
        steps: 2,
        tasks: 2
      })
      const [first, second] = report.tree.children
      assert.deepStrictEqual(
        first?.children.map(({ kind, name, ok, text }) => ({ kind, name, ok, text })),
        [
          { kind: "task", name: "a", ok: true, text: "A" },
          { kind: "task", name: "b", ok: true, text: "B" }
        ]
      )
      // A task's own turns are below it, not among those of the root (W-41).
      assert.deepStrictEqual(
        first?.children[0]?.children.map(({ name, text }) => [name, text]),
        [
          ["turn 1", "command"],
          ["turn 2", "final"]
        ]
      )
      assert.strictEqual(second?.text, "final")
    })
  )

  it.live("gives the same result in words and in characters", () =>
    Effect.gen(function* () {
      const scenario = simple({ offline: { root: [final("one two  three")] } })
      for (const style of ["whole", "words", "chars"] as const) {
        const cast = yield* Scenario.offline(scenario, style) ?? Effect.die("no offline model")
        const report = yield* Scenario.run(scenario, { cast })
        assert.strictEqual(report.result, "one two  three")
        assert.strictEqual(report.model, style)
      }
    })
  )

  it.live("reports an unmet expectation as its failure", () =>
    Effect.gen(function* () {
      const report = yield* Scenario.run(simple({ expect: () => ["too short", "too plain"] }))
      assert.deepInclude(report, { status: "fail", result: "done" })
      assert.deepStrictEqual(report.failure, { type: "unexpected_result", message: "too short; too plain" })
    })
  )

  it.live("reports an expectation that throws as its failure", () =>
    Effect.gen(function* () {
      const expect = (): ReadonlyArray<string> => {
        throw new Error("no result to look at")
      }
      const { failure } = yield* Scenario.run(simple({ expect }))
      assert.deepStrictEqual(failure, {
        type: "unexpected_result",
        message: "the expectation failed: no result to look at"
      })
    })
  )

  it.live("reports a run that gives up or whose model fails, and appends that to the recording (BP-183)", () =>
    Effect.gen(function* () {
      const endless = yield* Scenario.run(
        simple({ skills: [echo], maxSteps: 2, offline: { root: ['<block type="command" name="/skills"></block>'] } })
      )
      assert.deepStrictEqual(endless.failure, {
        type: "max_steps_reached",
        message: "Agent reached maximum steps (2)"
      })
      const last = endless.recording.at(-1)
      assert.deepInclude(last, { event: "error", step: -1, depth: 0 })
      const down = new Provider.ProviderError({ provider: "script", reason: "server_error", detail: "it is down" })
      const failed = yield* Scenario.run(simple({ offline: { root: [down] } }))
      assert.strictEqual(failed.failure?.type, "provider_error")
      assert.strictEqual(failed.status, "fail")
    })
  )

  it.live("skips a scenario that cannot run: no model, a missing recording, unavailable servers (BP-183)", () =>
    Effect.gen(function* () {
      const { offline: _, ...none } = simple()
      const reports = [
        yield* Scenario.run(Scenario.make(none)),
        yield* Scenario.run(simple({ offline: Effect.fail({ message: "no such recording" }) })),
        yield* Scenario.run(simple({ mcp: "servers.yml" })),
        yield* Scenario.run(simple({ mcp: "servers.yml" }), { connect: () => Effect.fail({ message: "it is away" }) })
      ]
      assert.deepStrictEqual(
        reports.map(({ failure, status }) => [status, failure?.message]),
        [
          ["skipped", "it has no offline model, and no model is named"],
          ["skipped", "no such recording"],
          ["skipped", "MCP servers are not connected here"],
          ["skipped", "it is away"]
        ]
      )
    })
  )

  it.live("gives a scenario its own skills, isolated from others (W-22)", () =>
    Effect.gen(function* () {
      const asks = { root: ['<block type="command" name="/skills"></block>', final("ok")] }
      const [first, second] = yield* Effect.all(
        [Scenario.run(simple({ skills: [echo], offline: asks })), Scenario.run(simple({ skills: [], offline: asks }))],
        { concurrency: 2 }
      )
      const told = (report: Scenario.Report) =>
        JSON.stringify(report.recording.find((entry) => entry.event === "builtin_result")?.data)
      assert.include(told(first), "echo")
      assert.include(told(second), "No skills available.")
    })
  )

  it.live("reports no cost for a model without a price", () =>
    Effect.gen(function* () {
      assert.isNull(Scenario.toJson(yield* Scenario.run(simple()))["cost_usd"])
    })
  )

  it.live("keeps keys out of its log (W-31, S-7)", () =>
    Effect.gen(function* () {
      const key = "sk-test-0123456789abcdef"
      const said = { root: [final(`Your key is ${key}.`)] }
      for (const scenario of [
        { input: `My key is ${key}.` },
        { offline: said, expect: ({ result }: Scenario.Report) => [`it says: ${result}`] },
        { offline: Effect.fail({ message: `no model takes ${key}` }) }
      ]) {
        const report = yield* Scenario.run(simple(scenario))
        assert.notInclude(JSON.stringify(Scenario.toJson(report)), "0123456789abcdef")
      }
    })
  )
})

describe("Scenario.save", () => {
  const folder = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped())

  it.live("writes the log of BP-184 to a file named by scenario, model and time", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const path = yield* Path.Path
      const fs = yield* FileSystem.FileSystem
      const scenario = simple({ name: "a b/c", description: "A test", skills: [echo] })
      const report = yield* Scenario.run(scenario)
      const file = yield* Scenario.save(report, directory)
      assert.match(path.basename(file), /^a_b_c_whole_\d{8}_\d{6}\.json$/)
      const log: unknown = JSON.parse(yield* fs.readFileString(file))
      assert.deepInclude(log, {
        scenario: "a b/c",
        description: "A test",
        provider: "script",
        model: "whole",
        input: "Go.",
        max_steps: 10,
        skills: ["echo"],
        result: "done",
        ok: true,
        failure: null,
        steps: 1
      })
      for (const key of ["started_at", "finished_at", "recording"]) assert.property(log, key)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("gives every run its own file and manifest line, also when many are saved at once (W-41)", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const report = yield* Scenario.run(simple())
      const files = yield* Effect.all(
        Array.from({ length: 20 }, () => Scenario.save(report, directory)),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(new Set(files).size, 20)
      const manifest: ReadonlyArray<{ readonly log: string }> = JSON.parse(
        yield* fs.readFileString(path.join(directory, "manifest.json"))
      )
      assert.deepStrictEqual(
        manifest.map((entry) => entry.log).toSorted(),
        files.map((file) => path.basename(file)).toSorted()
      )
      assert.notProperty(manifest[0], "recording")
      const left = (yield* fs.readDirectory(directory)).filter((name) => name.startsWith("manifest"))
      assert.deepStrictEqual(left, ["manifest.json"])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("stops waiting for a manifest that another process writes when it is interrupted (R-15)", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      yield* fs.makeDirectory(path.join(directory, "manifest.json.lock"))
      const saving = yield* Effect.forkChild(Scenario.save(yield* Scenario.run(simple()), directory))
      yield* Effect.sleep("100 millis")
      const stopped = yield* Effect.timeoutOption(Fiber.interrupt(saving), "2 seconds")
      assert.isTrue(Option.isSome(stopped))
      assert.isTrue(yield* fs.exists(path.join(directory, "manifest.json.lock")))
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("replaces a broken manifest", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const manifest = path.join(directory, "manifest.json")
      yield* fs.writeFileString(manifest, '[{"scenario": ')
      yield* Scenario.save(yield* Scenario.run(simple()), directory)
      assert.strictEqual(JSON.parse(yield* fs.readFileString(manifest)).length, 1)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("leaves a manifest unchanged that is too large to be read", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const manifest = path.join(directory, "manifest.json")
      const report = yield* Scenario.run(simple())
      const first = path.basename(yield* Scenario.save(report, directory))
      const before = yield* fs.readFileString(manifest)
      const save = (fetchedBytes: number) =>
        Effect.provideService(Scenario.save(report, directory), Limits.Limits, { ...Limits.defaults, fetchedBytes })
      const error = yield* Effect.flip(save(before.length - 1))
      assert.include(error.message, `'${manifest}' is larger than ${before.length - 1} bytes`)
      assert.strictEqual(yield* fs.readFileString(manifest), before)
      yield* save(before.length)
      const entries: ReadonlyArray<{ readonly log: string }> = JSON.parse(yield* fs.readFileString(manifest))
      assert.strictEqual(entries.length, 2)
      assert.strictEqual(entries[0]?.log, first)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("Scenario.scripted", () => {
  const said = (role: Message.Message["role"], text: string): Message.Message => ({
    role,
    content: [{ type: "text", text }]
  })

  /** The reply to a conversation, and the tokens it is said to have. */
  const reply = (provider: Provider.ProviderShape, messages: ReadonlyArray<Message.Message>) =>
    Effect.map(read(provider.stream(request({ messages }))), ({ parts, text }) => {
      const finish = finishOf(parts)
      return [text, finish?.type === "finish" ? finish.usage.inputTokens?.total : undefined]
    })

  it.effect("reads each message of a conversation once, however long it becomes", () =>
    Effect.gen(function* () {
      let looks = 0
      const watched = (message: Message.Message): Message.Message => ({
        role: message.role,
        get content() {
          looks++
          return message.content
        }
      })
      const provider = Scenario.scripted({ root: ["again"] })
      const messages = [watched(said("user", "go"))]
      for (let turn = 0; turn < 200; turn++) {
        yield* reply(provider, [said("system", "rules"), ...messages])
        messages.push(watched(said("assistant", "again")), watched(said("user", "went on")))
      }
      assert.isBelow(looks, 4 * messages.length)
    })
  )

  it.effect("counts the turns of each conversation separately", () =>
    Effect.gen(function* () {
      const provider = Scenario.scripted({ root: ["one", "two", "three"] })
      const [go, a, b, c] = [
        said("user", "go on"),
        said("assistant", "A".repeat(40)),
        said("user", "B"),
        said("user", "C")
      ]
      const rules = said("system", "r".repeat(400))
      const asked: ReadonlyArray<readonly [ReadonlyArray<Message.Message>, string, number]> = [
        [[rules, go], "one", 102],
        [[rules, go, a, b], "two", 112],
        // The instructions are others, what was said is shorter, another, and once more the same.
        [[said("system", "r"), go, a, b], "two", 12],
        [[go, a], "two", 12],
        [[rules, go, b, c], "one", 102],
        [[rules, go, a, b, a], "three", 122],
        [[rules], "one", 100],
        [[], "one", 0]
      ]
      for (const [messages, text, tokens] of asked)
        assert.deepStrictEqual(yield* reply(provider, messages), [text, tokens])
    })
  )
})
