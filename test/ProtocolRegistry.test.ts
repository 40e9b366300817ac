import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Option, Scope } from "effect"
import * as Protocol from "../src/Protocol.ts"
import * as ProtocolRegistry from "../src/ProtocolRegistry.ts"
import { scope } from "./support/skillSpec.ts"

class Peer extends Context.Service<Peer, { readonly answer: string }>()("test/Peer") {}
const Mood = Context.Reference<string>("test/ProtocolMood", { defaultValue: () => "default" })

const echo = (name: string) => Protocol.make(name, { handle: (block) => Effect.succeed(block.content) })
const asking = Protocol.make("peer", {
  documentation: "Ask the peer",
  effects: "read",
  handle: (block) =>
    Effect.gen(function* () {
      return `${block.content}: ${(yield* Peer).answer}, ${yield* Mood}`
    })
})

const ask = (name: string, content: string) =>
  ProtocolRegistry.ProtocolRegistry.use((registry) =>
    Option.match(registry.find(name), {
      onNone: () => Effect.succeed("nobody"),
      onSome: (protocol) => protocol.handle({ type: name, name: null, content }, { ...scope, refusal: () => undefined })
    })
  )

const namesIn = (registry: ProtocolRegistry.ProtocolRegistryShape) =>
  Effect.map(registry.all, (protocols) => protocols.map((protocol) => protocol.name))

describe("ProtocolRegistry", () => {
  it.effect("finds protocols by their exact name, and none for null (BP-81)", () =>
    Effect.gen(function* () {
      const registry = yield* ProtocolRegistry.ProtocolRegistry
      for (const name of ["B", "b ", "constructor", "__proto__"]) assert.isTrue(Option.isNone(registry.find(name)))
      assert.deepStrictEqual(yield* namesIn(registry), ["b", "a"])
      assert.strictEqual(yield* ask("a", "hi"), "hi")
    }).pipe(Effect.provide(ProtocolRegistry.layer(echo("b"), echo("a"))))
  )

  it.effect("accepts ten thousand protocols", () => {
    const many = Array.from({ length: 10_000 }, (_, n) => echo(`protocol_${n}`))
    return Effect.gen(function* () {
      const registry = yield* ProtocolRegistry.ProtocolRegistry
      assert.strictEqual((yield* namesIn(registry))[9_999], "protocol_9999")
    }).pipe(Effect.provide(ProtocolRegistry.layer(...many)))
  })

  it.effect("fails when a name is registered twice", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Effect.scoped(Layer.build(ProtocolRegistry.layer(echo("a"), echo("a")))))
      assert.strictEqual(error._tag, "ToolNameConflict")
      const registry = yield* ProtocolRegistry.ProtocolRegistry
      assert.strictEqual((yield* Effect.flip(registry.register(echo("a"))))._tag, "ToolNameConflict")
      assert.strictEqual((yield* Effect.flip(registry.register(echo("final"))))._tag, "DefinitionInvalid")
      assert.deepStrictEqual(yield* namesIn(registry), ["a"])
    }).pipe(Effect.provide(ProtocolRegistry.layer(echo("a"))))
  )

  it.effect("removes a protocol and frees its name when its scope closes", () =>
    Effect.gen(function* () {
      const registry = yield* ProtocolRegistry.ProtocolRegistry
      const inner = yield* Scope.make()
      yield* Scope.provide(registry.register(echo("late")), inner)
      assert.strictEqual(yield* ask("late", "hi"), "hi")
      yield* Scope.close(inner, Exit.void)
      assert.strictEqual(yield* ask("late", "hi"), "nobody")
      yield* registry.register(echo("late"))
      assert.deepStrictEqual(yield* namesIn(registry), ["a", "late"])
    }).pipe(Effect.provide(ProtocolRegistry.layer(echo("a"))))
  )

  it.effect("keeps the services of the layer, while those of the run take precedence", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* ask("peer", "q"), "q: 42, default")
      assert.strictEqual(yield* Effect.provideService(ask("peer", "q"), Mood, "busy"), "q: 42, busy")
      const registry = yield* ProtocolRegistry.ProtocolRegistry
      const [protocol] = yield* registry.all
      assert.deepStrictEqual([protocol?.documentation, protocol?.effects], ["Ask the peer", "read"])
    }).pipe(Effect.provide(ProtocolRegistry.layer(asking).pipe(Layer.provide(Layer.succeed(Peer, { answer: "42" })))))
  )

  it("shows an agent without a list all protocols, and with an empty list none (BP-78)", () => {
    const protocols = [echo("a"), echo("b")]
    const names = (listed: ReadonlyArray<string> | undefined) =>
      ProtocolRegistry.visible(protocols, listed).map((protocol) => protocol.name)
    assert.deepStrictEqual(names(undefined), ["a", "b"])
    assert.deepStrictEqual(names([]), [])
    assert.deepStrictEqual(names(["b", "unknown"]), ["b"])
  })
})
