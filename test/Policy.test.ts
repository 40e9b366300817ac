import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Logger, Option, Result, Schema, SchemaGetter, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hooks, Kernel, Policy, Protocol, ProtocolRegistry, RunStore, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { ports } from "./support/kernel.ts"
import { copied } from "./support/modules.ts"
import { call } from "./support/policy.ts"

const rules = (given: Policy.Rules) => Result.getOrThrow(Policy.rules(given))
const decide = (given: Policy.Rules, asked: Policy.PolicyCall) => Effect.runSync(rules(given).authorize(asked))
const words = (given: Policy.Rules, asked: Policy.PolicyCall) => decide(given, asked)._tag
const refused = (given: Policy.Rules) => Result.getOrThrow(Result.flip(Policy.rules(given)))

describe("Policy.for", () => {
  const pay = Skill.make("pay", {
    description: "Pays",
    input: Schema.Struct({ amount: Schema.FiniteFromString }),
    execute: ({ amount }) => Effect.succeed(`paid ${amount}`)
  })
  const limit = Policy.for(pay, ({ amount }, { context }) =>
    amount > Number(context["limit"] ?? 100) ? Policy.confirm(`${amount} is much`) : Policy.allowed
  )

  it.effect("decides about the calls of one skill by its decoded input, and allows all others", () =>
    Effect.gen(function* () {
      const tagOf = (asked: Policy.PolicyCall) => Effect.map(limit(asked), ({ _tag }) => _tag)
      assert.strictEqual(yield* tagOf(call("pay", { amount: "99" })), "Allowed")
      assert.deepStrictEqual(yield* limit(call("pay", { amount: "101" })), Policy.confirm("101 is much"))
      assert.strictEqual(yield* tagOf({ ...call("pay", { amount: "101" }), context: { limit: 200 } }), "Allowed")
      assert.strictEqual(yield* tagOf(call("send", { amount: "101" })), "Allowed")
      assert.strictEqual(yield* tagOf({ ...call("pay", { amount: "101" }), kind: "agent" }), "Allowed")
      assert.strictEqual(yield* tagOf(call("pay", { amount: "much" })), "Allowed")
    })
  )

  it.effect("may ask a service, and denies if that fails", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(
        `<block type="command" name="pay">{"amount": "1"}</block>`,
        "<final>ok</final>"
      )
      const broken = Policy.layer(Policy.for(pay, () => Effect.fail("no answer")))
      const agent = Agent.make({ instructions: "", model: "m", skills: [pay] })
      const { calls } = yield* Effect.provide(Kernel.run(agent, "?", { provider }), broken)
      assert.deepStrictEqual(
        calls.map(({ error }) => error),
        ["policy_error"]
      )
    }).pipe(Effect.provide(Layer.provide(Kernel.layerNoProvider, ports(pay))))
  )
})

describe("the approval of a skill", () => {
  const paid: Array<number> = []
  const pay = Skill.make("pay", {
    description: "Pays",
    input: Schema.Struct({ amount: Schema.FiniteFromString }),
    approval: ({ amount }) => amount > 100 && `${amount} is much`,
    execute: ({ amount }) => Effect.sync(() => `paid ${paid.push(amount)}`)
  })
  const live = (...skills: ReadonlyArray<Skill.AnySkill>) =>
    Kernel.layerNoProvider.pipe(Layer.provideMerge(ports(...skills)))
  const asking = (input: string) =>
    MockProvider.make(`<block type="command" name="pay">${input}</block>`, "<final>ok</final>")

  it.effect("asks a person about the calls that it selects by their decoded input", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "", model: "m", skills: [pay] })
      yield* Kernel.run(agent, "?", { provider: asking('{"amount": "100"}') })
      assert.deepStrictEqual(paid, [100])
      const provider = asking('{"amount": "101"}')
      yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" }))
      const [question] = yield* Kernel.questions("r")
      assert.deepInclude(question, { name: "pay", reason: "101 is much" })
      assert.deepStrictEqual(paid, [100])
      const answers = [{ callId: question?.callId ?? "", approved: true }]
      const { text } = yield* Kernel.resume(agent, "r", { provider, answers })
      assert.deepStrictEqual([text, paid], ["ok", [100, 101]])
    }).pipe(Effect.provide(live()))
  )

  it.effect("is asked for each call with always, unless a policy denies it, and a failing function denies", () => {
    const always = Skill.dynamic("pay", {
      description: "",
      inputSchema: { type: "object" },
      approval: "always",
      execute: () => Effect.succeed("paid")
    })
    const broken = Skill.make("pay", {
      description: "",
      input: Schema.Struct({}),
      approval: () => {
        throw new Error("bug")
      },
      execute: () => Effect.succeed("paid")
    })
    const run = (skill: Skill.AnySkill) =>
      Kernel.run(Agent.make({ instructions: "", model: "m", skills: [skill] }), "?", { provider: asking("{}") })
    return Effect.gen(function* () {
      assert.strictEqual((yield* Effect.flip(run(always)))._tag, "RunPaused")
      const denied = yield* Effect.provide(run(always), Policy.layerRules({ deny: [{ name: "pay", reason: "no" }] }))
      const failed = yield* run(broken)
      assert.deepStrictEqual(
        [...denied.calls, ...failed.calls].map(({ error }) => error),
        ["no", "policy_error"]
      )
    }).pipe(Effect.provide(live()))
  })
})

describe("Policy.rules", () => {
  it("checks deny before confirm and confirm before allow, with the reason of the first match (AC-19)", () => {
    const given: Policy.Rules = {
      deny: [
        { name: "shell", reason: "no shell" },
        { name: "*sh*", reason: "nothing with sh" }
      ],
      confirm: [{ name: "fs_*", reason: "files" }],
      allow: [{ name: "*", reason: "fine" }],
      default: "deny"
    }
    assert.deepStrictEqual(decide(given, call("shell")), Policy.denied("no shell"))
    assert.deepStrictEqual(decide(given, call("bash")), Policy.denied("nothing with sh"))
    assert.deepStrictEqual(decide(given, call("fs_read")), Policy.confirm("files"))
    assert.deepStrictEqual(decide(given, call("xfs_read")), { _tag: "Allowed", reason: "fine" })
  })

  it("has a default: allow, confirm, deny, or by the effects of a call", () => {
    assert.strictEqual(words({}, call("a")), "Allowed")
    assert.strictEqual(words({ default: "confirm" }, call("a", {}, "read")), "Confirm")
    assert.strictEqual(words({ default: "deny", allow: [{ name: "b" }] }, call("a")), "Denied")
    assert.strictEqual(words({ default: "effects" }, call("a", {}, "read")), "Allowed")
    assert.strictEqual(words({ default: "effects" }, call("a", {}, "idempotent")), "Confirm")
    assert.strictEqual(words({ default: "effects" }, call("a")), "Confirm")
    const own = { default: { write: "deny", idempotent: "confirm" } } as const
    assert.strictEqual(words(own, call("a", {}, "read")), "Allowed")
    assert.strictEqual(words(own, call("a", {}, "idempotent")), "Confirm")
    assert.strictEqual(words(own, call("a")), "Denied")
  })

  it("matches all arguments that a rule names, own properties only", () => {
    const given = { deny: [{ name: "*", where: { path: "^/etc/", mode: "w" } }] }
    assert.strictEqual(words(given, call("a", { path: "/etc/passwd", mode: "rw" })), "Denied")
    assert.strictEqual(words(given, call("a", { path: "/etc/passwd" })), "Allowed")
    assert.strictEqual(words(given, call("a", { path: "/home", mode: "w" })), "Allowed")
    assert.strictEqual(words({ deny: [{ name: "*", where: { toString: "." } }] }, call("a", {})), "Allowed")
    assert.strictEqual(words({ deny: [{ name: "*", where: new Map([["__proto__", "."]]) }] }, call("a", {})), "Allowed")
  })

  it("matches values other than strings as JSON, and a protocol's request as `request`", () => {
    assert.strictEqual(words({ deny: [{ name: "*", where: { n: "^42$" } }] }, call("a", { n: 42 })), "Denied")
    assert.strictEqual(words({ deny: [{ name: "*", where: { o: '"rm"' } }] }, call("a", { o: { c: "rm" } })), "Denied")
    assert.strictEqual(words({ deny: [{ name: "*", where: { n: "^null$" } }] }, call("a", { n: null })), "Denied")
    assert.strictEqual(
      words({ deny: [{ name: "mcp", where: { request: "delete" } }] }, call("mcp", "delete all")),
      "Denied"
    )
    assert.strictEqual(
      words({ deny: [{ name: "mcp", where: { path: "delete" } }] }, call("mcp", "delete all")),
      "Allowed"
    )
  })

  it("takes the whole input of a native protocol call without a `request` field as the request (AC-19)", () => {
    const native = (input: Policy.PolicyCall["input"]): Policy.PolicyCall => ({
      ...call("mcp", input),
      kind: "protocol"
    })
    const given = { deny: [{ name: "mcp", where: { request: "delete" } }] }
    assert.strictEqual(words(given, native({ request: "delete all" })), "Denied")
    assert.strictEqual(words(given, native({ sql: "delete all" })), "Denied")
    assert.strictEqual(words(given, native({ request: null, sql: "delete all" })), "Denied")
    assert.strictEqual(words(given, native({ request: { sql: "delete all" } })), "Denied")
    assert.strictEqual(
      words({ confirm: [{ name: "mcp", where: { sql: "delete" } }] }, native({ sql: "delete" })),
      "Confirm"
    )
    const select: Policy.Rules = { allow: [{ name: "mcp", where: { request: "^select" } }], default: "deny" }
    assert.strictEqual(words(select, native({ request: "select 1" })), "Allowed")
    assert.strictEqual(words(select, native({ request: ["select 1"], sql: "delete all" })), "Denied")
    // What a skill takes by that name is an argument like any other.
    assert.strictEqual(words(given, call("a", { sql: "delete all" })), "Allowed")
  })

  it("restricts a list when one item matches, and allows it only when every item does", () => {
    const bad = call("a", { paths: ["/home/x", "/etc/x"] })
    assert.strictEqual(words({ deny: [{ name: "*", where: { paths: "^/etc" } }] }, bad), "Denied")
    const homes: Policy.Rules = { allow: [{ name: "*", where: { paths: "^/home" } }], default: "deny" }
    assert.strictEqual(words(homes, bad), "Denied")
    assert.strictEqual(words(homes, call("a", { paths: [["/home/y"], "/home/x"] })), "Allowed")
    assert.strictEqual(words(homes, call("a", { paths: [] })), "Denied")
  })

  it("hides names, and denies calls of hidden names (AC-18)", () => {
    const given = { hide: ["internal_*"], allow: [{ name: "*" }] }
    const scope = { runId: "r", rootRunId: "r", agent: "a", depth: 0, context: {} }
    assert.isFalse(rules(given).visible?.("internal_reset", scope))
    assert.isTrue(rules(given).visible?.("search", scope))
    assert.deepStrictEqual(decide(given, call("internal_reset")), Policy.denied("not available"))
  })

  it("rejects a pattern that cannot be matched in linear time, with its path (S-12)", () => {
    assert.strictEqual(refused({ deny: [{ name: "a" }, { name: "b", where: { x: "(?=y)" } }] }).path, "deny[1].where.x")
    assert.strictEqual(refused({ allow: [{ name: "{a" }] }).path, "allow[0].name")
    assert.strictEqual(refused({ hide: ["["] }).path, "hide[0]")
    assert.match(refused({ deny: Array(1_001).fill({ name: "a" }) }).message, /at most 1000 rules/)
    const many = { name: "a" }
    const all = { deny: Array(250).fill(many), confirm: Array(250).fill(many), allow: Array(250).fill(many) }
    assert.match(refused({ ...all, hide: Array(251).fill("a") }).message, /at most 1000 rules/)
    assert.strictEqual(words({ ...all, hide: Array(250).fill("b") }, call("c")), "Allowed")
    const slow = { deny: [{ name: "*", where: { x: "(a+)+$" } }] }
    assert.strictEqual(words(slow, call("a", { x: `${"a".repeat(1024 * 1024)}!` })), "Allowed")
  })
})

describe("Policy.combine", () => {
  const policy = (decision: Policy.Decision): Policy.PolicyShape => ({ authorize: () => Effect.succeed(decision) })
  const both = (a: Policy.Decision, b: Policy.Decision) =>
    Effect.runSync(Policy.combine(policy(a), policy(b))?.authorize(call("x")) ?? Effect.die("no policy"))

  it.effect("shows only names that every policy shows (AC-18)", () =>
    Effect.gen(function* () {
      const showing = (...names: ReadonlyArray<string>) =>
        Policy.layer(
          () => Effect.succeed(Policy.allowed),
          (name) => names.includes(name)
        )
      const shown = yield* Effect.provide(
        Policy.current,
        showing("a", "b").pipe(
          Layer.provideMerge(showing("b", "c")),
          Layer.provideMerge(Layer.succeed(Policy.Policy, policy(Policy.allowed)))
        )
      )
      assert.deepStrictEqual(
        ["a", "b", "c"].filter((name) => shown?.visible?.(name, call("x"))),
        ["b"]
      )
    })
  )

  it("returns the strictest decision, with the first reason of its kind (AC-19)", () => {
    assert.deepStrictEqual(both(Policy.confirm("one"), Policy.denied("two")), Policy.denied("two"))
    assert.deepStrictEqual(both(Policy.allowed, Policy.confirm("two")), Policy.confirm("two"))
    assert.deepStrictEqual(both(Policy.confirm("one"), Policy.confirm("two")), Policy.confirm("one"))
    assert.deepStrictEqual(both(Policy.denied("one"), Policy.denied("two")), Policy.denied("one"))
  })

  it("returns a single policy unchanged", () => {
    const one = policy(Policy.allowed)
    assert.strictEqual(Policy.combine(one, undefined), one)
    assert.strictEqual(Policy.combine(undefined, one), one)
    assert.strictEqual(Policy.combine(one, one), one)
  })

  it("does not ask the second policy when the first denies", () => {
    const asked: Array<string> = []
    const second: Policy.PolicyShape = {
      authorize: ({ name }) => Effect.sync(() => (asked.push(name), Policy.allowed))
    }
    for (const first of [Policy.denied("one"), Policy.allowed]) {
      assert.deepStrictEqual(Effect.runSync(Policy.combine(policy(first), second)!.authorize(call(first._tag))), first)
    }
    assert.deepStrictEqual(asked, ["Allowed"])
  })

  it.effect("combines a layer with the policy around it", () =>
    Effect.gen(function* () {
      const outer = Policy.layerRules({ confirm: [{ name: "*", reason: "outer" }] })
      const inner = Policy.layer(({ name }) => Effect.succeed(name === "bad" ? Policy.denied("inner") : Policy.allowed))
      const context = yield* Layer.build(Layer.provideMerge(inner, outer))
      const shape = Policy.among(context)
      assert.deepStrictEqual(yield* shape!.authorize(call("bad")), Policy.denied("inner"))
      assert.deepStrictEqual(yield* shape!.authorize(call("good")), Policy.confirm("outer"))
    })
  )

  it.effect("combines layers in one list, and a policy provided to an inner layer", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const saying = (name: string, said: Policy.Decision) =>
        Policy.layer(() => Effect.sync(() => (asked.push(name), said)))
      const [one, two] = [saying("one", Policy.confirm("one")), saying("two", Policy.allowed)]
      const hidden = two.pipe(Layer.provide(saying("hidden", Policy.allowed)))
      for (const list of [[one, hidden] as const, [hidden, one] as const]) {
        asked.length = 0
        const shape = yield* Effect.provide(Policy.current, Layer.provideMerge(Layer.mergeAll(...list), one))
        assert.deepStrictEqual(yield* shape!.authorize(call("x")), Policy.confirm("one"))
        // Each of them once, though one is given in two places.
        assert.deepStrictEqual(asked.toSorted(), ["hidden", "one", "two"])
      }
    })
  )

  it.effect("combines a layer only with the policies around it where it is provided", () =>
    Effect.gen(function* () {
      let made = 0
      const shared = Policy.layerShape(Effect.sync(() => (made++, policy(Policy.allowed))))
      const strict = Policy.layerRules({ deny: [{ name: "*", reason: "strict" }] })
      const said = (place: string) =>
        Layer.effect(
          Context.Service<Policy.Decision>(place),
          Effect.flatMap(Policy.current, (shape) => shape!.authorize(call("x")))
        )
      const inside = said("inside").pipe(Layer.provide(shared), Layer.provide(strict))
      const over = said("over").pipe(Layer.provide(shared.pipe(Layer.provide(strict))))
      const alone = said("alone").pipe(Layer.provide(shared))
      for (const list of [[inside, over, alone] as const, [alone, over, inside] as const]) {
        made = 0
        const context = yield* Layer.build(Layer.mergeAll(...list))
        assert.deepStrictEqual(
          ["inside", "over", "alone"].map((place) => Context.get(context, Context.Service<Policy.Decision>(place))),
          [Policy.denied("strict"), Policy.denied("strict"), Policy.allowed]
        )
        assert.strictEqual(made, 1)
      }
    })
  )

  it.effect("combines layers of two copies of the package", () =>
    Effect.gen(function* () {
      const copy = Effect.map(copied(import.meta.resolve("../src/Policy.ts")), (module) => module as typeof Policy)
      const [one, other] = [yield* copy, yield* copy]
      assert.notStrictEqual(one.layerRules, other.layerRules)
      const list = [one.layerRules({ deny: [{ name: "*", reason: "no" }] }), other.layerRules({})] as const
      const shape = yield* Effect.provide(Policy.current, Layer.mergeAll(...list))
      assert.deepStrictEqual(yield* shape!.authorize(call("x")), Policy.denied("no"))
    })
  )

  it.effect("denies when a policy fails, dies or throws", () =>
    Effect.gen(function* () {
      const broken = [
        () => Effect.fail("no"),
        () => Effect.die("no"),
        (): never => {
          throw new Error("no")
        }
      ]
      for (const authorize of broken) {
        const context = yield* Layer.build(Policy.layer(authorize))
        assert.deepStrictEqual(yield* Policy.among(context)!.authorize(call("x")), Policy.denied("policy_error"))
      }
    })
  )

  it.effect("asks as if `by` and `within` were absent when a policy gives them as undefined", () =>
    Effect.gen(function* () {
      const asks: Policy.Decision = { _tag: "Confirm", reason: "sure?", by: undefined, within: undefined }
      const context = yield* Layer.build(Policy.layer(() => Effect.succeed(asks)))
      assert.deepInclude(yield* Policy.among(context)!.authorize(call("x")), { _tag: "Confirm", reason: "sure?" })
    })
  )

  it.effect("denies when a policy returns an invalid decision, also beside one that allows (AC-19)", () =>
    Effect.gen(function* () {
      const said = ["null", '"allowed"', "{}", '{"_tag":"Allow"}', '{"_tag":"Denied"}', '{"_tag":"Confirm","reason":5}']
      const odd = [
        ...said.map((text) => (): Effect.Effect<Policy.Decision> => Effect.succeed<Policy.Decision>(JSON.parse(text))),
        (): Effect.Effect<Policy.Decision> => JSON.parse("true")
      ]
      const allows: Policy.PolicyShape = { authorize: () => Effect.succeed(Policy.allowed) }
      for (const authorize of odd) {
        const layered = Policy.among(yield* Layer.build(Policy.layer(authorize)))
        const shapes = [layered, Policy.combine(allows, { authorize }), Policy.combine({ authorize }, allows)]
        for (const shape of shapes) {
          assert.deepStrictEqual(yield* shape!.authorize(call("x")), Policy.denied("policy_error"))
        }
      }
    })
  )
})

const ran: Array<Schema.Json> = []
const charge = Skill.make("charge", {
  description: "Charges an account",
  input: Schema.Struct({ amount: Schema.Finite }),
  execute: ({ amount }) => Effect.sync(() => (ran.push(amount), `charged ${amount}`))
})
const agent = Agent.make({ instructions: "", model: { id: "m", capabilities: ["text"] }, skills: "all" })
const asks = `<block type="command" name="charge">{"amount": 5}</block>`
const answers = `<block type="final">done</block>`

const kernel = (...more: ReadonlyArray<Layer.Layer<never, Policy.ConfigInvalid>>) => {
  ran.length = 0
  const mock = MockProvider.make(asks, answers)
  const base = Layer.merge(MockProvider.layerOf(mock), ports(charge))
  const layers = more.reduce(
    (all, layer) => Layer.provideMerge(layer, all),
    Layer.empty as Layer.Layer<never, Policy.ConfigInvalid>
  )
  return { mock, layer: Kernel.layer.pipe(Layer.provide(layers), Layer.provideMerge(base)) }
}

const toldLast = (mock: MockProvider.Mock): string => JSON.stringify(mock.lastCall?.messages.at(-1)?.content)

describe("a run under rules", () => {
  it.effect("tells the model why a call was denied, and does not run it (DR-22)", () => {
    const { layer, mock } = kernel(Policy.layerRules({ deny: [{ name: "charge", reason: "no money moves" }] }))
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "go")
      assert.include(toldLast(mock), "no money moves")
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(layer))
  })

  it.effect("records in the journal that the policy denied, not a person (DR-22)", () => {
    const { layer } = kernel(Policy.layerRules({ deny: [{ name: "charge", reason: "no money moves" }] }))
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "go", { runId: "r" })
      const records = yield* Stream.runCollect((yield* RunStore.RunStore).read("r"))
      const started = records.flatMap(({ events }) => events).find(({ type }) => type === "tool_calls_started")
      const refusal = { callId: "r:t1.0", approved: false, reason: "no money moves", by: "policy" }
      const asked = started?.type === "tool_calls_started" ? started.questions : []
      assert.deepStrictEqual(
        asked?.map(({ answer }) => answer),
        [refusal]
      )
      const reviewed = records.flatMap(({ events }) => events).find(({ type }) => type === "tool_call_started")
      const change = reviewed?.type === "tool_call_started" ? reviewed.change : undefined
      assert.isTrue(change?.type === "skip" && change.result.skipped)
    }).pipe(Effect.provide(layer))
  })

  it.effect("checks a protocol call also as the skill it reaches, and denies it if that is unknown", () => {
    const heard: Array<string> = []
    const till = Protocol.make("till", {
      handle: ({ content }) => Effect.sync(() => void heard.push(content)),
      skillOf: ({ content }) => {
        if (content === "all") throw new Error("how much is that?")
        return { name: "charge", input: { amount: Number(content) } }
      }
    })
    const deny = [
      { name: "charge", where: { amount: "^9$" }, reason: "too dear" },
      { name: "till", where: { request: "^8$" }, reason: "no eights" }
    ]
    const { layer, mock } = kernel(Policy.layerRules({ deny }))
    return Effect.gen(function* () {
      yield* (yield* ProtocolRegistry.ProtocolRegistry).register(till)
      const told: Array<string> = []
      for (const amount of ["5", "9", "8", "all"]) {
        mock.reset().respondWith(`<block type="till">${amount}</block>`, answers)
        yield* Kernel.run(agent, "go")
        told.push(toldLast(mock))
      }
      assert.include(told[1] ?? "", "too dear")
      assert.include(told[2] ?? "", "no eights")
      assert.include(told[3] ?? "", "policy_error")
      assert.deepStrictEqual(heard, ["5"])
    }).pipe(Effect.provide(layer))
  })

  it.effect("runs an approved protocol call that a hook turned into one of another skill (AC-19, R-25)", () => {
    const heard: Array<string> = []
    const refund = Skill.make("refund", {
      description: "Gives back",
      input: Schema.Struct({}),
      execute: () => Effect.succeed("refunded")
    })
    const till = Protocol.make("till", {
      handle: ({ content }, { refusal }) =>
        Effect.sync(() => void heard.push(`${content}: ${refusal(content) ?? "runs"}`)),
      skillOf: ({ content }) => ({ name: content, input: {} })
    })
    const hooks = Hooks.layer({
      onToolCallStarted: ({ call }) =>
        Effect.succeed(call.kind === "protocol" ? { value: { _tag: "Rewrite", input: { request: "refund" } } } : {})
    })
    const { layer, mock } = kernel(Policy.layerRules({ confirm: [{ name: "refund" }] }), hooks)
    return Effect.gen(function* () {
      yield* (yield* SkillRegistry.SkillRegistry).register(refund)
      yield* (yield* ProtocolRegistry.ProtocolRegistry).register(till)
      mock.reset().respondWith(`<block type="till">charge</block>`, answers)
      const paused = yield* Effect.flip(Kernel.run(agent, "go", { runId: "r" }))
      assert.strictEqual(paused._tag, "RunPaused")
      yield* Kernel.resume(agent, "r", { answers: [{ callId: "r:t1.0", approved: true }] })
      assert.deepStrictEqual(heard, ["refund: runs"])
    }).pipe(Effect.provide(layer))
  })

  it.effect("runs no call that one of two policies in a list denies (AC-19)", () =>
    Effect.gen(function* () {
      const deny = Policy.layerRules({ deny: [{ name: "charge", reason: "no money moves" }] })
      const allow = Policy.layerRules({})
      for (const list of [Layer.mergeAll(deny, allow), Layer.mergeAll(allow, deny)]) {
        const { layer, mock } = kernel(list)
        yield* Effect.provide(Kernel.run(agent, "go"), layer)
        assert.include(toldLast(mock), "no money moves")
        assert.deepStrictEqual(ran, [])
      }
    })
  )

  it.effect("does not run a hidden skill whose name the model guesses (AC-18, S-15)", () => {
    const { layer, mock } = kernel(Policy.layerRules({ hide: ["charge"] }))
    return Effect.gen(function* () {
      mock.reset().respondWith(`<block type="command" name="/skills"></block>`, asks, answers)
      yield* Kernel.run(agent, "go")
      assert.include(JSON.stringify(mock.messagesAt(1)), "No skills available.")
      assert.include(toldLast(mock), "not available")
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(layer))
  })

  it.effect("neither shows nor runs a hidden protocol, whatever its calls would be allowed (AC-18, S-15)", () => {
    const heard: Array<string> = []
    const echo = Protocol.make("echo", { handle: ({ content }) => Effect.sync(() => heard.push(content)) })
    const hiding = Policy.layer(
      () => Effect.succeed(Policy.allowed),
      (name) => name !== "echo"
    )
    const { layer, mock } = kernel(hiding)
    return Effect.gen(function* () {
      yield* (yield* ProtocolRegistry.ProtocolRegistry).register(echo)
      mock
        .reset()
        .respondWith(
          `<block type="command" name="/protocols"></block>`,
          `<block type="echo">psst</block>`,
          `<block type="final">done</block>`
        )
      yield* Kernel.run(agent, "go")
      assert.include(JSON.stringify(mock.messagesAt(1)), "[]</block>")
      assert.notInclude(JSON.stringify(mock.messagesAt(0)), "echo")
      assert.include(toldLast(mock), "Protocol 'echo' is not allowed")
      assert.deepStrictEqual(heard, [])
    }).pipe(Effect.provide(layer))
  })

  it.effect("pauses for a confirmation, runs exactly what was approved, and only once (DR-22, R-25)", () => {
    const { layer } = kernel(Policy.layerRules({ confirm: [{ name: "charge", reason: "money" }] }))
    return Effect.gen(function* () {
      const paused = yield* Effect.flip(Kernel.run(agent, "go", { runId: "r" }))
      assert.strictEqual(paused._tag, "RunPaused")
      const state = Option.getOrThrow(yield* RunStore.RunStore.use((store) => store.load("r")))
      assert.deepStrictEqual(state.questions, [
        { callId: "r:t1.0", name: "charge", input: { amount: 5 }, reason: "money" }
      ])
      assert.deepStrictEqual(ran, [])
      const unknown = yield* Effect.flip(Kernel.resume(agent, "r", { answers: [{ callId: "other", approved: true }] }))
      assert.strictEqual(unknown._tag, "QuestionNotFound")
      const approval = { callId: "r:t1.0", approved: true, by: "ann" }
      assert.strictEqual((yield* Kernel.resume(agent, "r", { answers: [approval] })).text, "done")
      assert.strictEqual((yield* Kernel.resume(agent, "r", { answers: [approval] })).text, "done")
      assert.deepStrictEqual(ran, [5])
    }).pipe(Effect.provide(layer))
  })

  it.effect("lets a person change the arguments of a call, but not allow a forbidden one (AC-19)", () => {
    const { layer, mock } = kernel(
      Policy.layerRules({
        confirm: [{ name: "charge" }],
        deny: [{ name: "charge", where: { amount: "^\\d{4,}$" }, reason: "too much" }]
      })
    )
    return Effect.gen(function* () {
      yield* Effect.flip(Kernel.run(agent, "go", { runId: "a" }))
      yield* Kernel.resume(agent, "a", { answers: [{ callId: "a:t1.0", approved: true, input: { amount: 7 } }] })
      assert.deepStrictEqual(ran, [7])
      mock.reset().respondWith(asks, answers)
      yield* Effect.flip(Kernel.run(agent, "go", { runId: "b" }))
      yield* Kernel.resume(agent, "b", {
        answers: [{ callId: "b:t1.0", approved: true, input: { amount: 9000 } }]
      })
      assert.include(toldLast(mock), "too much")
      assert.deepStrictEqual(ran, [7])
    }).pipe(Effect.provide(layer))
  })

  it.effect("checks both the written and the final arguments: the stricter decision applies (AC-19)", () => {
    const removed: Array<unknown> = []
    const remove = Skill.make("remove", {
      description: "Removes a file",
      input: Schema.Struct({
        path: Schema.Trim,
        recursive: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true)))
      }),
      execute: (input) => Effect.sync(() => (removed.push(input), "removed"))
    })
    const guard = Policy.layerRules({
      deny: [
        { name: "remove", where: { path: "^/etc" }, reason: "not there" },
        { name: "remove", where: { recursive: "true" }, reason: "not whole folders" },
        { name: "remove", where: { path: " $" }, reason: "write it plainly" }
      ],
      confirm: [{ name: "remove", where: { path: "^ " }, reason: "sure?" }]
    })
    const removing = (input: Schema.Json) => `<block type="command" name="remove">${JSON.stringify(input)}</block>`
    const mock = MockProvider.make(
      removing({ path: " /etc/passwd", recursive: false }),
      removing({ path: "/tmp/a" }),
      removing({ path: "/tmp/a ", recursive: false }),
      removing({ path: "/tmp/a", recursive: false }),
      answers
    )
    const layer = Kernel.layer.pipe(
      Layer.provide(guard),
      Layer.provideMerge(Layer.merge(MockProvider.layerOf(mock), ports(remove)))
    )
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "go")
      const told = [1, 2, 3].map((call) => JSON.stringify(mock.messagesAt(call)?.at(-1)))
      assert.deepStrictEqual(
        ["not there", "not whole folders", "write it plainly"].map((reason, at) => told[at]?.includes(reason)),
        [true, true, true]
      )
      const provider = MockProvider.make(removing({ path: " /tmp/b", recursive: false }))
      assert.strictEqual((yield* Effect.flip(Kernel.run(agent, "go", { provider })))._tag, "RunPaused")
      assert.deepStrictEqual(removed, [{ path: "/tmp/a", recursive: false }])
    }).pipe(Effect.provide(layer))
  })

  for (const [how, hung] of [
    ["hangs", Effect.never],
    ["cannot be interrupted", Effect.uninterruptible(Effect.never)]
  ] as const) {
    it.effect(
      `limits decoding arguments to the time limit of the call: a schema that ${how} is abandoned (R-15)`,
      () => {
        const looked: Array<string> = []
        const stuck = Skill.make("stuck", {
          description: "Looks its input up",
          timeout: 50,
          input: Schema.Struct({
            id: Schema.String.pipe(
              Schema.decode({
                decode: SchemaGetter.transformEffect((id: string) =>
                  Effect.andThen(
                    Effect.sync(() => looked.push(id)),
                    hung
                  )
                ),
                encode: SchemaGetter.passthrough()
              })
            )
          }),
          execute: () => Effect.succeed("found")
        })
        const calls = ["a", "secret"].map(
          (id) => `<block type="command" name="stuck">${JSON.stringify({ id })}</block>`
        )
        const mock = MockProvider.make(...calls, answers)
        const guard = Policy.layerRules({ deny: [{ name: "stuck", where: { id: "secret" }, reason: "not that one" }] })
        const layer = Kernel.layer.pipe(
          Layer.provide(guard),
          Layer.provideMerge(Layer.merge(MockProvider.layerOf(mock), ports(stuck)))
        )
        return Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Kernel.run(agent, "go"))
          yield* TestClock.adjust("1 second")
          assert.strictEqual((yield* Fiber.join(fiber)).text, "done")
          assert.include(JSON.stringify(mock.messagesAt(1)?.at(-1)), "could not be read in time")
          assert.include(JSON.stringify(mock.messagesAt(2)?.at(-1)), "not that one")
          // What is denied as it was written is not even read.
          assert.deepStrictEqual(looked, ["a"])
        }).pipe(Effect.provide(layer))
      }
    )
  }

  it.effect("checks arguments again after a hook changed them (AC-19)", () => {
    const hooks = Hooks.layer({
      onToolCallStarted: () => Effect.succeed({ value: { _tag: "Rewrite", input: { amount: 9000 } } })
    })
    const { layer, mock } = kernel(
      Policy.layerRules({ deny: [{ name: "charge", where: { amount: "9000" }, reason: "too much" }] }),
      hooks
    )
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "go")
      assert.include(toldLast(mock), "too much")
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(layer))
  })

  for (const [title, amount, runs] of [
    ["what was answered: nobody is asked again", 7, [7]],
    ["what was asked, which is not what was answered", 5, []]
  ] as const) {
    it.effect(`accepts a call that a hook changed into ${title} (AC-19, R-25)`, () => {
      const hooks = Hooks.layer({
        onToolCallStarted: () => Effect.succeed({ value: { _tag: "Rewrite", input: { amount } } })
      })
      const { layer } = kernel(Policy.layerRules({ confirm: [{ name: "charge" }] }), hooks)
      return Effect.gen(function* () {
        yield* Effect.flip(Kernel.run(agent, "go", { runId: "r" }))
        const approvals = [{ callId: "r:t1.0", approved: true, input: { amount: 7 } }]
        const resumed = yield* Effect.exit(Kernel.resume(agent, "r", { answers: approvals }))
        assert.strictEqual(Exit.isSuccess(resumed), runs.length > 0)
        assert.deepStrictEqual(ran, [...runs])
      }).pipe(Effect.provide(layer))
    })
  }

  it.effect("applies the policy of the layer and that of the fiber, wherever they are provided", () => {
    const { layer, mock } = kernel(Policy.layerRules({ confirm: [{ name: "*" }] }))
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "go").pipe(
        Effect.provide(Policy.layerRules({ deny: [{ name: "charge", reason: "not by this fiber" }] }))
      )
      assert.include(toldLast(mock), "not by this fiber")
      mock.reset().respondWith(asks, answers)
      const paused = yield* Effect.flip(Kernel.run(agent, "go").pipe(Effect.provide(Policy.layerRules({}))))
      assert.strictEqual(paused._tag, "RunPaused")
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(layer))
  })

  it.effect("denies when a policy given as a value returns nothing (AC-19)", () => {
    const { layer, mock } = kernel(
      Layer.succeed(Policy.Policy, { authorize: () => Effect.succeed<Policy.Decision>(JSON.parse("null")) })
    )
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "go")
      assert.include(toldLast(mock), "policy_error")
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(layer))
  })

  it.effect("shows and runs nothing when a policy throws while deciding visibility (AC-18)", () => {
    const { layer, mock } = kernel(
      Layer.succeed(Policy.Policy, {
        authorize: () => Effect.succeed(Policy.allowed),
        visible: () => {
          throw new Error("bug")
        }
      })
    )
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "go")
      assert.include(toldLast(mock), "is not available")
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(layer))
  })

  it.effect("denies when a policy given as a value dies", () => {
    const { layer, mock } = kernel(Layer.succeed(Policy.Policy, { authorize: () => Effect.die("bug") }))
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "go")
      assert.include(toldLast(mock), "policy_error")
      assert.deepStrictEqual(ran, [])
    }).pipe(Effect.provide(layer))
  })

  it.effect("logs the failure of a policy, without keys, and nothing when it is interrupted", () => {
    const key = "sk-ant-REDACTED"
    const lines: Array<string> = []
    const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
    const { layer } = kernel(Policy.layer(() => Effect.fail(`the ledger is away, key ${key}`)))
    const asleep = kernel(Policy.layer(() => Effect.never))
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "go").pipe(Effect.provide(layer))
      assert.lengthOf(lines, 1)
      assert.match(lines[0] ?? "", /a policy failed.*the ledger is away/)
      assert.notInclude(lines[0] ?? "", key)
      const run = yield* Effect.forkChild(Kernel.run(agent, "go").pipe(Effect.provide(asleep.layer)))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(run)
      assert.lengthOf(lines, 1)
    }).pipe(Effect.provide(logger))
  })
})
