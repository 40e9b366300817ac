import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Hooks, Kernel, KernelError, Policy, Skill } from "kernai"
import { Replay, type Scenario } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { agent, plan, play, slow, stored, takeUp, told } from "../support/workflow.ts"

/** Two skills that tell how often they were entered. */
const pair = () => {
  const entered: Array<string> = []
  const make = (name: string) =>
    Skill.make(name, {
      description: name,
      input: Schema.Struct({ x: Schema.optionalKey(Schema.String) }),
      effects: "write",
      execute: (input, { callId }) =>
        Effect.sync(() => {
          entered.push(callId)
          return `${name} ${input.x ?? ""}`.trim()
        })
    })
  return { entered, skills: [make("open"), make("secret")] }
}

const asking = (reply: string): Scenario.Script => ({
  root: [plan(["a"]), final("ok")],
  tasks: { a: [reply, final("tried")] }
})

describe("a sub-agent", () => {
  for (const [title, name] of [
    ["by its name", "secret"],
    ["with blanks around it", " secret "],
    ["in capitals", "Secret"],
    ["with a look-alike letter", "sеcret"]
  ] as const) {
    it.effect(`cannot call what its parent may not, ${title} (S-15)`, () => {
      const { entered, skills } = pair()
      return Effect.gen(function* () {
        const { events, text } = yield* play(asking(command(name)), { agent: { skills: ["open"] } })
        assert.deepStrictEqual(entered, [])
        assert.strictEqual(of(events, "skill_error").length, 1)
        assert.strictEqual(text, "ok")
      }).pipe(Effect.provide(kernel(...skills)))
    })
  }

  it.effect("sees in /skills what its parent sees, and no more (S-15)", () => {
    const { skills } = pair()
    return Effect.gen(function* () {
      const { events } = yield* play(
        { root: [command("/skills"), plan(["a"]), final("ok")], tasks: { a: [command("/skills"), final("x")] } },
        { agent: { skills: ["open"] } }
      )
      const [mine, its] = of(events, "builtin_result").map((event) => event.result)
      assert.include(mine ?? "", "open")
      assert.notInclude(mine ?? "", "secret")
      assert.strictEqual(its, mine)
    }).pipe(Effect.provide(kernel(...skills)))
  })

  it.effect("keeps within the skills the host allows for the run (BP-65)", () => {
    const { entered, skills } = pair()
    return Effect.gen(function* () {
      const { events } = yield* play(asking(command("secret") + command("open")), { allowedSkills: ["open"] })
      assert.deepStrictEqual(entered, ["run:t1/a:t1.1"])
      assert.include(told(events, "run:t1/a"), "Skill 'secret' is not allowed")
    }).pipe(Effect.provide(kernel(...skills)))
  })

  it.effect("is checked by the same policy, which receives its depth and root id (AC-18, AC-19)", () => {
    const { entered, skills } = pair()
    const asked: Array<Policy.PolicyCall> = []
    const policy: Policy.PolicyShape = {
      visible: (name) => name !== "hidden",
      authorize: (call) => {
        asked.push(call)
        return Effect.succeed(call.depth === 0 ? Policy.allowed : Policy.denied("not for tasks"))
      }
    }
    return Effect.gen(function* () {
      const { events } = yield* play(asking(command("open"))).pipe(Effect.provideService(Policy.Policy, policy))
      assert.deepStrictEqual(entered, [])
      assert.deepStrictEqual(
        asked.map(({ depth, name, rootRunId, runId }) => ({ depth, name, rootRunId, runId })),
        [{ depth: 1, name: "open", rootRunId: "run", runId: "run:t1/a" }]
      )
      assert.include(told(events, "run:t1/a"), "not for tasks")
    }).pipe(Effect.provide(kernel(...skills)))
  })
})

describe("a task that needs a person", () => {
  const confirming: Policy.PolicyShape = {
    authorize: ({ name }) => Effect.succeed(name === "secret" ? Policy.confirm("it is dangerous") : Policy.allowed)
  }
  const script: Scenario.Script = {
    root: [plan(["a", "b", "c", { id: "after", depends_on: ["a"] }]), final("ok")],
    tasks: {
      a: [command("secret", { x: "A" }), final("done a")],
      b: [command("secret", { x: "B" }), final("done b")],
      c: [command("open"), final("done c")],
      after: [final("done after")]
    }
  }

  it.effect("pauses the whole run once the others have ended; dependents wait (DR-22)", () => {
    const { entered, skills } = pair()
    return Effect.gen(function* () {
      const { error, events } = yield* play(script)
      assert.strictEqual(error, undefined)
      const paused = of(events, "paused")
      assert.deepStrictEqual(
        paused.map(({ depth, reason, taskId }) => ({ depth, reason, taskId })),
        [
          { depth: 1, reason: "approval_required", taskId: "a" },
          { depth: 1, reason: "approval_required", taskId: "b" },
          { depth: 0, reason: "approval_required", taskId: undefined }
        ]
      )
      assert.deepInclude(paused.at(-1)?.metadata, { callIds: ["run:t1/a:t1.0", "run:t1/b:t1.0"] })
      assert.deepStrictEqual(entered, ["run:t1/c:t1.0"])
      assert.deepStrictEqual(
        of(events, "task_start").map((event) => event.id),
        ["a", "b", "c"]
      )
      assert.strictEqual(of(events, "workflow_complete").length, 0)
      assert.strictEqual(of(events, "task_error").length, 0)
      assert.strictEqual((yield* stored("run")).status.type, "paused")
    }).pipe(Effect.provideService(Policy.Policy, confirming), Effect.provide(kernel(...skills)))
  })

  it.effect("has its questions listed in the order of the plan, not in the order they were asked (R-7, DR-22)", () => {
    const { skills } = pair()
    return Effect.gen(function* () {
      const late = slow(1000, command("secret", { x: "A" }))
      const { events } = yield* play({ ...script, tasks: { ...script.tasks, a: [late] } })
      assert.deepStrictEqual(
        of(events, "paused").map(({ taskId }) => taskId),
        ["b", "a", undefined]
      )
      const callIds = ["run:t1/a:t1.0", "run:t1/b:t1.0"]
      assert.deepInclude(of(events, "paused").at(-1)?.metadata, { callIds })
      assert.deepStrictEqual(
        (yield* Kernel.questions("run")).map(({ callId }) => callId),
        callIds
      )
    }).pipe(Effect.provideService(Policy.Policy, confirming), Effect.provide(kernel(...skills)))
  })

  it.effect("continues with its own answer, and pauses again without one", () => {
    const { entered, skills } = pair()
    return Effect.gen(function* () {
      yield* play(script)
      const second = yield* takeUp(script, { answers: [{ callId: "run:t1/a:t1.0", approved: true }] })
      assert.deepStrictEqual(entered, ["run:t1/c:t1.0", "run:t1/a:t1.0"])
      assert.deepInclude(of(second.events, "paused").at(-1)?.metadata, { callIds: ["run:t1/b:t1.0"] })
      const third = yield* takeUp(script, {
        answers: [{ callId: "run:t1/b:t1.0", approved: false, reason: "too late" }]
      })
      assert.strictEqual(third.text, "ok")
      assert.strictEqual(entered.length, 2)
      assert.include(told(third.events, "run:t1/b"), "too late")
      assert.include(told(third.events), '{"a":"done a","b":"done b","c":"done c","after":"done after"}')
    }).pipe(Effect.provideService(Policy.Policy, confirming), Effect.provide(kernel(...skills)))
  })

  it.effect("keeps its answer when the process that recorded it died before the task received it (DR-7, DR-22)", () => {
    const { entered, skills } = pair()
    return Effect.gen(function* () {
      yield* play(script)
      const approvals = ["a", "b"].map((id) => ({ callId: `run:t1/${id}:t1.0`, approved: true, by: "Ada" }))
      const died = yield* takeUp(script, {
        answers: approvals,
        stop: () => new KernelError.AgentCrashError({ runId: "run", agentId: "agent" })
      })
      assert.strictEqual(died.error?._tag, "AgentCrashError")
      assert.deepStrictEqual(yield* Kernel.questions("run"), [])
      assert.strictEqual(entered.length, 1)
      assert.strictEqual((yield* takeUp(script)).text, "ok")
      assert.strictEqual(entered.length, 3)
      assert.strictEqual((yield* Replay.run(agent(), "run")).lives, 3)
    }).pipe(Effect.provideService(Policy.Policy, confirming), Effect.provide(kernel(...skills)))
  })

  it.effect("uses an answer for its question only, not for a later one about the same call (R-25)", () => {
    const { entered, skills } = pair()
    const changing = Hooks.layer({
      onToolCallStarted: ({ call }) =>
        Effect.sync(() => (call.kind === "skill" ? Hooks.rewrite({ x: "changed" }) : undefined))
    })
    return Effect.gen(function* () {
      const one = { ...script, root: [plan(["a"]), final("ok")] }
      yield* play(one)
      const approvals = [{ callId: "run:t1/a:t1.0", approved: true }]
      // What was approved is changed by the hook, so it is asked about once more.
      assert.strictEqual(of((yield* takeUp(one, { answers: approvals })).events, "paused").length, 2)
      assert.strictEqual(of((yield* takeUp(one)).events, "paused").length, 2)
      assert.deepStrictEqual(entered, [])
      const last = yield* takeUp(one, { answers: approvals })
      assert.strictEqual(last.text, "ok")
      assert.include(told(last.events, "run:t1/a"), "secret changed")
      assert.deepStrictEqual(entered, ["run:t1/a:t1.0"])
    }).pipe(Effect.provideService(Policy.Policy, confirming), Effect.provide([kernel(...skills), changing]))
  })

  it.effect("delays the later sequential tasks, but no parallel one", () => {
    const { entered, skills } = pair()
    return Effect.gen(function* () {
      const { events } = yield* play({
        ...script,
        root: [plan([{ id: "a" }, { id: "b" }, { id: "c", parallel: true }], "mixed"), final("ok")]
      })
      assert.deepStrictEqual(
        of(events, "task_start").map((event) => event.id),
        ["c", "a"]
      )
      assert.deepStrictEqual(entered, ["run:t1/c:t1.0"])
    }).pipe(Effect.provideService(Policy.Policy, confirming), Effect.provide(kernel(...skills)))
  })

  it.effect("refuses an answer to a question it did not ask (R-25)", () => {
    const { entered, skills } = pair()
    return Effect.gen(function* () {
      yield* play(script)
      const { error } = yield* takeUp(script, { answers: [{ callId: "run:t1/c:t1.0", approved: true }] })
      assert.strictEqual(error?._tag, "QuestionNotFound")
      assert.strictEqual(entered.length, 1)
    }).pipe(Effect.provideService(Policy.Policy, confirming), Effect.provide(kernel(...skills)))
  })
})
