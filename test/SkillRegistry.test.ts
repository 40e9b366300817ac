import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Logger, Option, Scheduler, Schema, Scope } from "effect"
import type * as Model from "../src/Model.ts"
import * as Skill from "../src/Skill.ts"
import * as SkillRegistry from "../src/SkillRegistry.ts"
import { interruptingAt } from "./support/interrupting.ts"
import { scope } from "./support/skillSpec.ts"
import { times } from "./support/longRun.ts"

class Greeting extends Context.Service<Greeting, { readonly text: string }>()("test/Greeting") {}
const Mood = Context.Reference<string>("test/Mood", { defaultValue: () => "default" })

const named = (name: string, source: Skill.Source = "native") =>
  Skill.make(name, { description: name, source, input: Schema.Struct({}), execute: () => Effect.succeed(name) })

const greet = Skill.make("greet", {
  description: "Greet",
  input: Schema.Struct({}),
  execute: () =>
    Effect.gen(function* () {
      return `${(yield* Greeting).text}, ${yield* Mood}`
    })
})

const names = Effect.map(
  SkillRegistry.SkillRegistry.use((registry) => registry.all),
  (skills) => skills.map((skill) => skill.name)
)

const call = (name: string) =>
  SkillRegistry.SkillRegistry.use((registry) =>
    Option.match(registry.find(name), {
      onNone: () => Effect.succeed("not found"),
      onSome: (skill) => skill.call({}, scope)
    })
  )

describe("SkillRegistry.layer", () => {
  it.effect("finds a skill by its exact name", () =>
    Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      assert.isTrue(Option.isSome(registry.find("search")))
      // The look-alike has a Cyrillic letter (S-15).
      for (const other of ["Search", " search", "search ", "ѕearch", "", "__proto__", "constructor"]) {
        assert.isTrue(Option.isNone(registry.find(other)), other)
      }
    }).pipe(Effect.provide(SkillRegistry.layer(named("search"))))
  )

  it.effect("registers thousands of skills one by one, and releases them", () =>
    Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      const inner = yield* Scope.make()
      const count = times(10_000, 1_000)
      const skills = Array.from({ length: count }, (_, n) => named(`skill_${n}`, n % 2 === 0 ? "native" : "mcp"))
      for (const skill of skills) yield* Scope.provide(registry.register(skill), inner)
      const all = yield* names
      assert.deepStrictEqual([all.length, all[1], all[count / 2 + 1]], [count, "skill_2", "skill_3"])
      yield* Scope.close(inner, Exit.void)
      assert.deepStrictEqual(yield* names, [])
    }).pipe(Effect.provide(SkillRegistry.layer()))
  )

  it.effect("fails when a name is registered twice (AC-12)", () =>
    Effect.gen(function* () {
      const twice = SkillRegistry.layer(named("search"), named("other"), named("search", "mcp"))
      const error = yield* Effect.flip(Effect.scoped(Layer.build(twice)))
      assert.deepStrictEqual(
        error,
        new SkillRegistry.ToolNameConflict({ name: "search", existing: "native", incoming: "mcp" })
      )
    })
  )

  it.effect("dies on an invalid skill name", () =>
    Effect.gen(function* () {
      for (const name of ["", "a b", "a".repeat(65), 'a"b', "é"]) {
        const exit = yield* Effect.exit(Effect.scoped(Layer.build(SkillRegistry.layer(named(name)))))
        assert.isTrue(Exit.isFailure(exit), name)
      }
    })
  )

  it.effect("warns of patterns that models are not shown, by skill, input and reason", () => {
    const warnings: Array<unknown> = []
    const logger = Logger.make(({ message }) => void warnings.push(...[message].flat()))
    const text = (pattern: RegExp) => Schema.String.check(Schema.isPattern(pattern))
    const order = Skill.make("order", {
      description: "",
      input: Schema.Struct({
        code: text(/^[a-z]+$/i),
        lines: Schema.Array(Schema.Struct({ sku: text(/^(?!x)\w+$/u) })),
        city: text(/^[A-Z]/u),
        at: Schema.Date
      }),
      execute: () => Effect.void
    })
    return Effect.gen(function* () {
      yield* Layer.build(SkillRegistry.layer(order))
      assert.deepStrictEqual(warnings, [
        "skill 'order': /^[a-z]+$/i of 'code' is not in its JSON Schema, which has patterns with the flag u alone",
        "skill 'order': /^(?!x)\\w+$/u of 'lines.[].sku' is not in its grammar"
      ])
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("keeps the services of the layer, while those of the run take precedence", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* call("greet"), "hello, default")
      assert.strictEqual(yield* Effect.provideService(call("greet"), Mood, "of the run"), "hello, of the run")
      assert.strictEqual(yield* call("greet"), "hello, default")
    }).pipe(Effect.provide(SkillRegistry.layer(greet).pipe(Layer.provide(Layer.succeed(Greeting, { text: "hello" })))))
  )

  it.effect("keeps a reference of the layer unless the run sets its own", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* call("greet"), "hello, of the layer")
    }).pipe(
      Effect.provide(
        SkillRegistry.layer(greet).pipe(
          Layer.provide(Layer.mergeAll(Layer.succeed(Greeting, { text: "hello" }), Layer.succeed(Mood, "of the layer")))
        )
      )
    )
  )

  it.effect("runs skills in the span of the run, not of the layer", () =>
    Effect.gen(function* () {
      const where = Skill.make("where", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.map(Effect.currentSpan, (span) => span.name)
      })
      const built = yield* Effect.withSpan(Layer.build(SkillRegistry.layer(where)), "the layer")
      const skill = Option.getOrThrow(Context.get(built, SkillRegistry.SkillRegistry).find("where"))
      assert.strictEqual(yield* Effect.withSpan(skill.call({}, scope), "the run"), "the run")
    })
  )
})

describe("SkillRegistry registration", () => {
  it.effect("removes a registered skill when its scope closes", () =>
    Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      const inner = yield* Scope.make()
      yield* Scope.provide(registry.register(named("extra")), inner)
      assert.deepStrictEqual(yield* names, ["search", "extra"])
      yield* Scope.close(inner, Exit.void)
      assert.deepStrictEqual(yield* names, ["search"])
    }).pipe(Effect.provide(SkillRegistry.layer(named("search"))))
  )

  it.effect("keeps all properties of a source's skill except its origin (AC-12, AC-15)", () =>
    Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      const given = Skill.make("look", {
        description: "Looks",
        input: Schema.Struct({ at: Schema.Trim }),
        effects: "read",
        annotations: { openWorld: false },
        requires: ["vision"],
        produces: ["image"],
        timeout: 50,
        execute: ({ at }) => Effect.succeed(at)
      })
      yield* registry.registerSource({ source: "mcp", skills: [given] })
      const found = Option.getOrThrow(registry.find("look"))
      const facts = ({
        annotations,
        description,
        effects,
        inputSchema,
        listing,
        produces,
        requires,
        timeout
      }: Skill.AnySkill) => [annotations, description, effects, inputSchema, listing, produces, requires, timeout]
      assert.deepStrictEqual(facts(found), facts(given))
      assert.deepStrictEqual([found.source, given.source], ["mcp", "native"])
      assert.deepStrictEqual(yield* found.normalize?.({ at: " here " }) ?? Effect.undefined, { at: "here" })
    }).pipe(Effect.scoped, Effect.provide(SkillRegistry.layer()))
  )

  it.effect("orders native skills, then MCP, then skill packs, each as registered (AC-12)", () =>
    Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      yield* registry.registerSource({ source: "skill-pack", skills: [named("skills_list"), named("skills_load")] })
      yield* registry.registerSource({ source: "mcp", skills: [named("b2"), named("b1")] })
      yield* registry.registerSource({ source: "mcp", skills: [named("a1")] })
      yield* registry.register(named("later"))
      assert.deepStrictEqual(yield* names, ["first", "later", "b2", "b1", "a1", "skills_list", "skills_load"])
      assert.strictEqual(Option.getOrThrow(registry.find("a1")).source, "mcp")
    }).pipe(Effect.provide(SkillRegistry.layer(named("first"))))
  )

  it.effect("changes nothing when a skill of a source conflicts or has an invalid name", () =>
    Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      const clash = yield* Effect.flip(
        registry.registerSource({ source: "mcp", skills: [named("fine"), named("search")] })
      )
      assert.strictEqual(clash._tag, "ToolNameConflict")
      const within = yield* Effect.flip(
        registry.registerSource({ source: "mcp", skills: [named("same"), named("same")] })
      )
      assert.strictEqual(within._tag, "ToolNameConflict")
      const impossible = yield* Effect.flip(
        registry.registerSource({ source: "mcp", skills: [named("fine"), named("not fine")] })
      )
      assert.strictEqual(impossible._tag, "DefinitionInvalid")
      assert.deepStrictEqual(yield* names, ["search"])
    }).pipe(Effect.provide(SkillRegistry.layer(named("search"))))
  )

  it.effect("replaces the skills of a source as a whole, in place", () =>
    Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      const first = yield* registry.registerSource({ source: "mcp", skills: [named("a"), named("b")] })
      yield* registry.registerSource({ source: "mcp", skills: [named("z")] })
      const held = yield* registry.all
      yield* first.replace([named("b"), named("c")])
      assert.deepStrictEqual(yield* names, ["b", "c", "z"])
      // A reader keeps the snapshot it has.
      assert.deepStrictEqual(
        held.map((skill) => skill.name),
        ["a", "b", "z"]
      )
      const error = yield* Effect.flip(first.replace([named("d"), named("z")]))
      assert.strictEqual(error._tag, "ToolNameConflict")
      assert.deepStrictEqual(yield* names, ["b", "c", "z"])
    }).pipe(Effect.provide(SkillRegistry.layer()))
  )

  it.effect("ignores a replacement after the scope of the source closed", () =>
    Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      const inner = yield* Scope.make()
      const source = yield* Scope.provide(registry.registerSource({ source: "mcp", skills: [named("a")] }), inner)
      yield* Scope.close(inner, Exit.void)
      yield* source.replace([named("ghost")])
      assert.deepStrictEqual(yield* names, [])
    }).pipe(Effect.provide(SkillRegistry.layer()))
  )

  it.effect("stays consistent wherever the replacement of a source is interrupted", () =>
    Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      let isCut = true
      for (let at = 0; isCut; at++) {
        const inner = yield* Scope.make()
        const source = yield* Scope.provide(registry.registerSource({ source: "mcp", skills: [named("a")] }), inner)
        const cut = yield* Effect.forkChild(
          Effect.provideService(source.replace([named("b")]), Scheduler.Scheduler, interruptingAt(at))
        )
        isCut = Exit.hasInterrupts(yield* Fiber.await(cut))
        yield* source.replace([named("b"), named("c")])
        assert.deepStrictEqual(yield* names, ["b", "c"])
        yield* Scope.close(inner, Exit.void)
        assert.deepStrictEqual(yield* names, [])
      }
    }).pipe(Effect.provide(SkillRegistry.layer()))
  )

  it.effect("lets a running call finish after its skill is replaced", () =>
    Effect.gen(function* () {
      const registry = yield* SkillRegistry.SkillRegistry
      const gate = yield* Deferred.make<string>()
      const slow = Skill.make("slow", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Deferred.await(gate)
      })
      const source = yield* registry.registerSource({ source: "native", skills: [slow] })
      const running = yield* Effect.forkChild(call("slow"), { startImmediately: true })
      yield* source.replace([])
      assert.strictEqual(yield* call("slow"), "not found")
      yield* Deferred.succeed(gate, "finished")
      assert.strictEqual(yield* Fiber.join(running), "finished")
    }).pipe(Effect.provide(SkillRegistry.layer()))
  )
})

describe("SkillRegistry.allowed and visible (AC-18, BP-94)", () => {
  const seeing = Skill.make("see", {
    description: "See",
    input: Schema.Struct({}),
    requires: ["vision", "audio_in"],
    execute: () => Effect.succeed("seen")
  })
  const skills = [named("a"), seeing, named("b")]
  const text: Model.Model = { id: "text", capabilities: ["text", "audio_in"] }
  const eyes: Model.Model = { id: "eyes", capabilities: ["text", "audio_in", "vision"] }

  it("explains why a skill is unavailable, with one rule for listing and calling (S-15)", () => {
    const a = named("a")
    assert.isUndefined(SkillRegistry.allowed(a, { agentSkills: "all" }))
    assert.isUndefined(SkillRegistry.allowed(a, { agentSkills: ["a"], allowed: ["a"] }))
    assert.strictEqual(SkillRegistry.allowed(a, { agentSkills: undefined }), "is not allowed")
    assert.strictEqual(SkillRegistry.allowed(a, { agentSkills: [] }), "is not allowed")
    assert.strictEqual(SkillRegistry.allowed(a, { agentSkills: "all", allowed: [] }), "is not allowed")
    assert.strictEqual(SkillRegistry.allowed(seeing, { agentSkills: "all", model: text }), "requires vision")
    assert.isUndefined(SkillRegistry.allowed(seeing, { agentSkills: "all", model: eyes }))
  })

  it("lists available skills in the order of the agent's list", () => {
    const shown = (access: SkillRegistry.Access) => SkillRegistry.visible(skills, access).map((skill) => skill.name)
    assert.deepStrictEqual(shown({ agentSkills: "all" }), ["a", "see", "b"])
    assert.deepStrictEqual(shown({ agentSkills: "all", model: text }), ["a", "b"])
    assert.deepStrictEqual(shown({ agentSkills: ["b", "unknown", "a"] }), ["b", "a"])
    assert.deepStrictEqual(shown({ agentSkills: ["b", "a"], allowed: ["a"] }), ["a"])
    assert.deepStrictEqual(shown({ agentSkills: undefined }), [])
  })

  it("reads the agent's list once, however long it is", () => {
    const names = Array.from({ length: 500 }, (_, index) => `s${index}`)
    let looks = 0
    const watched = new Proxy(names, {
      get: (list, key) => {
        looks++
        return Reflect.get(list, key)
      }
    })
    assert.lengthOf(
      SkillRegistry.visible(
        names.map((name) => named(name)),
        { agentSkills: watched }
      ),
      500
    )
    assert.isBelow(looks, 1_000)
  })

  it("writes the listing, or says that it is empty", () => {
    assert.strictEqual(SkillRegistry.listing([named("a"), named("b")]), "- a: a\n- b: b")
    assert.strictEqual(SkillRegistry.listing(skills, text), "- a: a\n- b: b")
    assert.strictEqual(SkillRegistry.listing([]), "No skills available.")
    assert.strictEqual(SkillRegistry.listing([seeing], text), "No skills available.")
  })
})
