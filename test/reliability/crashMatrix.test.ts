import { afterAll, assert, describe, it, vi } from "@effect/vitest"
import { isLong, quickly } from "../support/longRun.ts"
import { Clock, Effect, Layer, Schema, Stream } from "effect"
import { Agent, Hooks, Media, Message, Middleware, Policy, PromptPipeline, SkillRegistry, Skill } from "kernai"
import { CrashMatrix, MockProvider } from "kernai/testing"
import * as Broken from "../support/brokenKernels.ts"
import * as Stores from "../support/brokenStores.ts"
import { subjects } from "../support/crashScripts.ts"
import { kernelOneByOne } from "../support/oneByOne.ts"
import { file, sqlite } from "../support/stores.ts"

// A tree of four agents has many records: seconds of processor time, and minutes where many processes share a core.
vi.setConfig({ testTimeout: 600_000 })

const subject = (name: string): CrashMatrix.Subject => {
  const found = subjects().find((subject) => subject.name === name)
  if (found === undefined) throw new Error(`there is no subject '${name}'`)
  return found
}

/** How many times runs were cut off here; the acceptance reads it. */
let points = 0
const count = (report: CrashMatrix.Report) => {
  points += report.points
  return report
}
afterAll(() => console.log(`crash points: ${points}`))

const rulesOf = (report: CrashMatrix.Report) => new Set(report.violations.map(({ rule }) => rule))

describe("a run crashed at every record, in every way (R-1 to R-7)", () => {
  for (const subject of subjects()) {
    it.live(`${subject.name} loses nothing, doubles nothing and ends as if undisturbed`, () =>
      Effect.gen(function* () {
        const report = count(yield* CrashMatrix.run(subject, { kernel: kernelOneByOne }))
        assert.deepStrictEqual(report.violations, [])
        assert.strictEqual(report.points, report.commits * 4)
      })
    )
  }

  for (const name of ["plain", "tool", "pause"]) {
    it.live(`${name} survives a second crash at every record of every recovery`, () =>
      Effect.gen(function* () {
        const report = count(
          yield* CrashMatrix.run(subject(name), {
            kernel: kernelOneByOne,
            ways: ["before", "after"],
            again: ["unacknowledged"]
          })
        )
        assert.deepStrictEqual(report.violations, [])
      })
    )
  }
})

describe("a task that asks a person (R-7, DR-22)", () => {
  const tasks = subject("workflow")
  const asks = Policy.layer((call) => Effect.succeed(call.name === "pay" ? Policy.confirm("it costs") : Policy.allowed))
  const layer = Layer.merge(tasks.layer, asks)

  it.live("is answered in the process that resumes the run, and no question is asked twice", () =>
    Effect.gen(function* () {
      const report = count(yield* CrashMatrix.run({ ...tasks, layer }, { ways: ["before", "after"] }))
      assert.deepStrictEqual(report.violations, [])
    })
  )

  it.live("receives a context given with its answer, also after a further crash (DR-9)", () =>
    Effect.gen(function* () {
      const answer: CrashMatrix.Subject["answer"] = (_, questions) => ({
        answers: questions.map(({ callId }) => ({ callId, approved: true })),
        context: { sure: true }
      })
      const report = count(yield* CrashMatrix.run({ ...tasks, layer, answer }, { ways: ["after"] }))
      assert.deepStrictEqual(report.violations, [])
    })
  )

  if (isLong) {
    it.live("fails the matrix when it asks an answered question again", () =>
      Effect.gen(function* () {
        const broken = { kernel: Broken.thatForgetsAnswers, ways: ["after"] } as const
        const report = yield* CrashMatrix.run({ ...tasks, layer }, broken)
        assert.deepStrictEqual(rulesOf(report), new Set(["same_journal"]))
        assert.include(CrashMatrix.format(report), "approval_required")
      })
    )
  }

  it.live("passes its questions with their input to the subject's own `answer`", () =>
    Effect.gen(function* () {
      const asked = new Set<string>()
      const answer: CrashMatrix.Subject["answer"] = (_, questions) => {
        for (const { input } of questions) asked.add(JSON.stringify(input))
        return { answers: questions.map(({ callId }) => ({ callId, approved: false })) }
      }
      const report = yield* CrashMatrix.run({ ...tasks, layer, answer }, { ways: [] })
      assert.deepStrictEqual(report.violations, [])
      assert.deepStrictEqual(asked, new Set(['{"to":"rent"}', '{"to":"power"}', '{"to":"sum"}']))
    })
  )
})

it.live("a task paused by a hook receives the context given to its run, also after a further crash (DR-7, DR-9)", () =>
  Effect.gen(function* () {
    const tasks = subject("workflow")
    const asks = Hooks.layer({
      onToolCallStarted: ({ call, context }) =>
        Effect.succeed(call.name === "pay" && context["sure"] !== true ? Hooks.pause("sure?") : undefined)
    })
    const answer = () => ({ context: { sure: true } })
    const layer = Layer.merge(tasks.layer, asks)
    const report = count(yield* CrashMatrix.run({ ...tasks, layer, answer }, { ways: ["after"] }))
    assert.deepStrictEqual(report.violations, [])
  })
)

it.live("an image made by a skill keeps its id wherever the run crashes (BP-116)", () =>
  Effect.gen(function* () {
    const pay = Skill.dynamic("pay", {
      description: "pay",
      inputSchema: { type: "object" },
      execute: () => Effect.succeed(Media.fromBytes(new Uint8Array(200_000).fill(7), "image/png"))
    })
    const layer = Layer.merge(subject("tool").layer, SkillRegistry.layer(pay))
    const report = count(yield* CrashMatrix.run({ ...subject("tool"), layer }))
    assert.deepStrictEqual(report.violations, [])
  })
)

describe("a model that is asked more than once in a turn (R-5)", () => {
  const settings: CrashMatrix.Settings = { ways: ["after"] }

  it.live("is asked by a middleware again after a failure", () =>
    Effect.gen(function* () {
      const again: Middleware.Middleware = {
        callModel: (call, next) => Stream.catch(next(call), () => next(call))
      }
      const failing = subject("model failure")
      const layer = Layer.provideMerge(failing.layer, Middleware.layer(again))
      const report = count(yield* CrashMatrix.run({ ...failing, layer }, settings))
      assert.deepStrictEqual(report.violations, [])
    })
  )

  it.live("is identified by the messages before it, each of which is serialized once", () =>
    Effect.gen(function* () {
      let written = 0
      const before = {
        ...Message.user("before all"),
        toJSON: () => {
          written++
          return "before all"
        }
      }
      const reminded: Middleware.Middleware = {
        callModel: ({ request, ...call }, next) =>
          next({ ...call, request: { ...request, messages: [before, ...request.messages] } })
      }
      const tools = subject("three tools")
      const layer = Layer.provideMerge(tools.layer, Middleware.layer(reminded))
      const report = count(yield* CrashMatrix.run({ ...tools, layer }, { ...settings, kernel: kernelOneByOne }))
      assert.deepStrictEqual(report.violations, [])
      assert.isAbove(report.points, 10)
      assert.strictEqual(written, 1)
    })
  )

  it.live("may summarize the conversation before the turn is prepared", () =>
    Effect.gen(function* () {
      const writer = MockProvider.make("They paid.")
      const tool = subject("tool")
      const long = Array.from({ length: 4 }, (_, n) => [Message.user("q".repeat(400)), Message.assistant(`${n}`)])
      const model = MockProvider.make().onCall(({ messages }) =>
        messages.at(-1)?.role === "user" ? { calls: [{ id: "a", name: "pay" }] } : "done"
      )
      const layer = Layer.mergeAll(
        tool.layer,
        MockProvider.layerOf(model),
        PromptPipeline.layer({ compaction: { summarize: PromptPipeline.summarizer({ provider: writer }) } })
      )
      const agent = { ...tool.agent, contextWindow: 500, reservedOutputTokens: 0 }
      const report = count(
        yield* CrashMatrix.run({ ...tool, agent, layer, options: { history: long.flat() } }, settings)
      )
      assert.deepStrictEqual(report.violations, [])
      assert.isAbove(writer.callCount, 0)
    })
  )
})

describe("the verdict about a call in flight (DR-17)", () => {
  it.live("may be undefined for a repeatable call: the kernel decides as it does for a worker", () =>
    Effect.gen(function* () {
      const asked = new Set<string>()
      const careful: CrashMatrix.Subject = {
        ...subject("three tools"),
        verdict: (_, { effects, result }) => {
          asked.add(effects)
          if (effects !== "write") return undefined
          return result?.output === undefined ? "retry" : { resolve: { output: result.output } }
        }
      }
      const report = count(yield* CrashMatrix.run(careful))
      assert.deepStrictEqual(report.violations, [])
      assert.deepStrictEqual(asked, new Set(["write", "idempotent"]))
    })
  )

  it.live("is required for a write: without one the run never ends (R-1, DR-16)", () =>
    Effect.gen(function* () {
      const silent = { ...subject("tool"), verdict: () => undefined }
      const report = yield* CrashMatrix.run(silent, { ways: ["after"] })
      assert.deepStrictEqual(rulesOf(report), new Set(["nothing_lost"]))
      assert.match(CrashMatrix.format(report), /still failed after 24 processes: InFlightToolCalls/)
    })
  )

  it.live("is not needed for a call that a suspended process enters after another completed it (R-4)", () =>
    Effect.gen(function* () {
      const pay = Skill.dynamic("pay", {
        description: "pays",
        effects: "idempotent",
        inputSchema: { type: "object" },
        execute: () => Effect.delay(Effect.succeed("paid"), 5)
      })
      const tasks = subject("workflow")
      const layer = Layer.merge(tasks.layer, SkillRegistry.layer(pay))
      const report = count(yield* CrashMatrix.run({ ...tasks, layer }, { ways: ["stalled"] }))
      assert.deepStrictEqual(report.violations, [])
    })
  )
})

describe("a run interrupted at every point where it waits (R-15, R-16)", () => {
  for (const name of quickly(["tool", "three tools", "approval", "workflow"], (name) => name !== "workflow")) {
    it.live(`${name} leaves nothing behind, and continues as if undisturbed`, () =>
      Effect.gen(function* () {
        const report = count(yield* CrashMatrix.run(subject(name), { ways: [], interrupts: "waits" }))
        assert.deepStrictEqual(report.violations, [])
        assert.isAbove(report.points, report.commits)
      })
    )
  }

  it.live("fails the matrix when a skill leaves a fiber running", () =>
    Effect.gen(function* () {
      const leaks = Skill.make("pay", {
        description: "Pays, and goes on doing so",
        input: Schema.Struct({ to: Schema.String }),
        effects: "read",
        execute: () => Effect.as(Effect.forkDetach(Effect.never), "paid")
      })
      const tool = subject("tool")
      const layer = Layer.merge(tool.layer, SkillRegistry.layer(leaks))
      const report = yield* CrashMatrix.run({ ...tool, layer }, { ways: [], interrupts: "waits" })
      assert.deepStrictEqual(rulesOf(report), new Set(["nothing_left"]))
      assert.include(CrashMatrix.format(report), "interrupted at step")
    })
  )
})

describe("a run crashed at every append, in every way (R-1 to R-7)", () => {
  for (const subject of subjects()) {
    it.live(`${subject.name} repeats nothing before its last effect`, () =>
      Effect.gen(function* () {
        const strict = yield* CrashMatrix.run(subject, { kernel: kernelOneByOne, ways: [] })
        const report = count(yield* CrashMatrix.run(subject))
        assert.deepStrictEqual(report.violations, [])
        assert.isBelow(report.commits, strict.commits)
        assert.strictEqual(report.points, report.commits * 4)
      })
    )
  }
})

describe("on stores that outlive a process (R-1, R-6, R-7)", () => {
  for (const { name, place } of [file, sqlite]) {
    it.live(`${name}: keeps what it acknowledged when every process opens it again`, () =>
      Effect.gen(function* () {
        const report = count(
          yield* CrashMatrix.run(subject("tool"), { store: place, ways: ["unacknowledged", "stalled"] })
        )
        assert.deepStrictEqual(report.violations, [])
      })
    )
  }
})

describe("the matrix finds what is broken", () => {
  it.live("R-5: a kernel without the revision check continues a run that another has finished", () =>
    Effect.gen(function* () {
      const report = yield* CrashMatrix.run(subject("tool"), { kernel: Broken.withoutRevisionCheck, ways: ["stalled"] })
      assert.isTrue(rulesOf(report).has("fenced"), CrashMatrix.format(report))
    })
  )

  it.live("R-2: a kernel without the launch commit enters a writing skill twice", () =>
    Effect.gen(function* () {
      const report = yield* CrashMatrix.run(subject("tool"), { kernel: Broken.withoutLaunch, ways: ["before"] })
      assert.isTrue(rulesOf(report).has("writes_once"), CrashMatrix.format(report))
    })
  )

  it.live("R-2: a kernel whose launches are acknowledged before they are stored enters a skill too early", () =>
    Effect.gen(function* () {
      const report = yield* CrashMatrix.run(subject("tool"), { kernel: Broken.thatAcknowledgesEarly, ways: ["before"] })
      assert.isTrue(rulesOf(report).has("writes_once"), CrashMatrix.format(report))
    })
  )

  it.live("R-2: a kernel that repeats what was in flight runs a writing skill twice", () =>
    Effect.gen(function* () {
      const report = yield* CrashMatrix.run(subject("tool"), { kernel: Broken.thatRetriesInFlight, ways: ["after"] })
      assert.isTrue(rulesOf(report).has("writes_once"), CrashMatrix.format(report))
    })
  )

  it.live("R-2: a verdict that repeats a writing skill although its result is known", () =>
    Effect.gen(function* () {
      const hasty = { ...subject("three tools"), verdict: () => "retry" as const }
      const report = yield* CrashMatrix.run(hasty, { ways: ["before"] })
      assert.deepStrictEqual(rulesOf(report), new Set(["writes_once"]))
      // `send` is idempotent: it may.
      const said = report.violations.map(({ detail }) => detail)
      assert.deepStrictEqual(said, [
        "the verdict lets call-a run again, though what came of it is known",
        "the verdict lets call-c run again, though what came of it is known"
      ])
    })
  )

  it.live("R-7: a skill that is declared idempotent and is not, and so is repeated without a verdict (DR-17)", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "stamps", instructions: "", model: "m", skills: "all", dialect: "tools" })
      const stamp = Skill.dynamic("stamp", {
        description: "stamps",
        effects: "idempotent",
        inputSchema: { type: "object" },
        execute: () => Effect.map(Effect.delay(Clock.currentTimeMillis, 20), (now) => `at ${now}`)
      })
      const layer = Layer.merge(
        SkillRegistry.layer(stamp),
        MockProvider.layer({ calls: [{ id: "s", name: "stamp" }] }, "done")
      )
      const report = yield* CrashMatrix.run({ agent, input: "go", layer }, { ways: ["before"] })
      assert.deepStrictEqual(rulesOf(report), new Set(["same_journal"]))
      assert.match(CrashMatrix.format(report), /tool_call_completed .*at 1020.* became .*at 1040/)
    })
  )

  const lies = [
    ["nothing_lost", "three tools", "asks a model before the run is stored", { kernel: Broken.thatStoresLate }],
    ["nothing_lost", "three tools", "loses the last record it acknowledged", { store: Stores.thatLosesTheLast }],
    ["same_input", "three tools", "repeats an idempotent call with another input", { kernel: Broken.thatChangesInput }],
    ["results_kept", "three tools", "runs what has a response again", { kernel: Broken.thatForgetsResponses }],
    ["append_repeatable", "tool", "does not know its own record again", { store: Stores.withoutRepeats }]
  ] as const
  for (const [rule, name, what, settings] of lies) {
    it.live(`${rule}: a ${"store" in settings ? "store" : "kernel"} that ${what}`, () =>
      Effect.gen(function* () {
        // Whoever resumes wants everything that was cut off to be tried again.
        const eager = { ...subject(name), verdict: () => "retry" as const }
        const report = yield* CrashMatrix.run(eager, { ...settings, ways: ["unacknowledged", "after"] })
        assert.isTrue(rulesOf(report).has(rule), CrashMatrix.format(report))
      })
    )
  }

  it.live("R-7: instructions that differ between processes, with the place of the difference", () =>
    Effect.gen(function* () {
      let process = 0
      const agent = Agent.make({ name: "moody", instructions: Effect.sync(() => `mood ${process++}`), model: "m" })
      const layer = Layer.merge(SkillRegistry.layer(), MockProvider.layer("done"))
      const report = yield* CrashMatrix.run({ agent, input: "go", layer }, { ways: ["before"] })
      assert.deepStrictEqual(rulesOf(report), new Set(["same_journal"]))
      assert.match(CrashMatrix.format(report), /before at commit 1 of process 1: run differs at its event 3/)
    })
  )

  it.live("a skill that waits for ever is interrupted at its time limit, in virtual time, and the run ends", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "stuck", instructions: "", model: "m", skills: "all", dialect: "tools" })
      const wait = Skill.dynamic("wait", {
        description: "waits",
        inputSchema: { type: "object" },
        execute: () => Effect.never
      })
      const layer = Layer.merge(
        SkillRegistry.layer(wait),
        MockProvider.layer({ calls: [{ id: "w", name: "wait" }] }, "done")
      )
      const report = yield* CrashMatrix.run({ agent, input: "go", layer }, { ways: ["before"] })
      assert.deepStrictEqual(report.violations, [])
    })
  )
})
