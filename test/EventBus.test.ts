import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Result, Schema, Scope, Stream } from "effect"
import * as Address from "../src/Address.ts"
import * as EventBus from "../src/EventBus.ts"
import * as Limits from "../src/Limits.ts"
import type { RunEvent } from "../src/RunEvent.ts"
import { chunk, event, message, phase } from "./support/runEvents.ts"

const progress = (rootRunId: string, namespace?: string) =>
  Effect.fromResult(Address.TopicId.progress(rootRunId, namespace))
const agent = (address: string) => Effect.fromResult(Address.AgentId.parse(address))

/** Collects a topic until the phase of revision 99. */
const follow = Effect.fnUntraced(function* (topic: Address.TopicId) {
  const bus = yield* EventBus.EventBus
  return yield* Effect.forkChild(
    bus.subscribe(topic).pipe(
      Stream.takeUntil((event) => "revision" in event && event.revision === 99),
      Stream.map(label),
      Stream.runCollect
    ),
    { startImmediately: true }
  )
})

class ShopClosed extends Schema.TaggedError<ShopClosed>()("ShopClosed", {}) {
  override get message() {
    return "the shop is closed"
  }
}

const label = (event: RunEvent): string =>
  event.type === "text_chunk" ? event.text : "revision" in event ? `${event.runId}:${event.revision}` : event.type

describe("EventBus topics", () => {
  it.effect("deliver a whole tree of runs in order, in one subscription (CP-13)", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.EventBus
      const following = yield* follow(yield* progress("run"))
      const child = { runId: "run/t1", depth: 1, taskId: "t1" }
      bus.publish(phase(1))
      bus.publish(event({ type: "task_start", id: "t1", callId: "t.0", childRunId: "t/0", input: "x", dependsOn: [] }))
      bus.publish(chunk("a", child))
      bus.publish(phase(7, child))
      bus.publish(phase(2, { runId: "other", rootRunId: "other" }))
      bus.publish(phase(99))
      assert.deepStrictEqual(yield* Fiber.join(following), ["run:1", "task_start", "a", "run/t1:7", "run:99"])
    }).pipe(Effect.provide(EventBus.layerMemory))
  )

  it.effect("deliver the stream parts of one agent under its key (CP-13)", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.EventBus
      const ada = yield* agent("react/ada")
      const bob = yield* agent("react/bob")
      const following = yield* Effect.forkChild(
        bus.subscribe(Address.TopicId.stream(ada)).pipe(Stream.take(2), Stream.map(label), Stream.runCollect),
        { startImmediately: true }
      )
      bus.publish(chunk("a"), ada)
      bus.publish(phase(1), ada)
      bus.publish(chunk("b"), bob)
      bus.publish(chunk("nobody"))
      bus.publish(chunk("c"), ada)
      assert.deepStrictEqual(yield* Fiber.join(following), ["a", "c"])
    }).pipe(Effect.provide(EventBus.layerMemory))
  )

  it("can be derived from the name of any agent", () => {
    assert.strictEqual(Address.TopicId.stream(EventBus.agentIdOf("ada")).toString(), "agent.stream/ada")
    for (const name of ["a/b c\n", "é\ud800", "x".repeat(1_000)]) {
      const id = EventBus.agentIdOf(name, "prod")
      assert.deepStrictEqual(Address.AgentId.parse(id.toString()), Result.succeed(id))
    }
  })

  it.effect("of one's own carry the events that a host publishes on them, and only those (CP-13)", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.EventBus
      const topic = (address: string) => Effect.fromResult(Address.TopicId.parse(address))
      const own = yield* topic("shop.answers/oslo")
      const others = ["shop.answers/rome", "shop.questions/oslo", "prod/shop.answers/oslo", "agent.progress/run"]
      const following = yield* follow(own)
      const elsewhere = yield* Effect.forEach(others, (address) => Effect.flatMap(topic(address), follow))
      bus.publish(chunk("a"), own)
      bus.publish(chunk("not here"), yield* agent("react/oslo"))
      bus.publish(phase(1), own)
      bus.publish(phase(99), own)
      for (const address of others) bus.publish(phase(99), yield* topic(address))
      assert.deepStrictEqual(yield* Fiber.join(following), ["a", "run:1", "run:99"])
      const received = yield* Effect.forEach(elsewhere, Fiber.join)
      assert.deepStrictEqual(received, [["run:99"], ["run:99"], ["run:99"], ["not here", "run:99"]])
    }).pipe(Effect.provide(EventBus.layerMemory))
  )

  it.effect("separate namespaces (CP-13)", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.EventBus
      const here = yield* follow(yield* progress("run"))
      const there = yield* follow(yield* progress("run", "prod"))
      const from = yield* agent("prod/react/ada")
      bus.publish(chunk("here"))
      bus.publish(chunk("there"), from)
      bus.publish(phase(99))
      bus.publish(phase(99), from)
      assert.deepStrictEqual(yield* Fiber.join(here), ["here", "run:99"])
      assert.deepStrictEqual(yield* Fiber.join(there), ["there", "run:99"])
    }).pipe(Effect.provide(EventBus.layerMemory))
  )

  it.effect("drop stream parts for a slow subscriber, never phases, and nothing for the others (R-23)", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.EventBus
      const topic = yield* progress("run")
      const slow = yield* Effect.provideService(follow(topic), Limits.Limits, { ...Limits.defaults, liveEvents: 3 })
      const fast = yield* follow(topic)
      for (let revision = 1; revision <= 3; revision++) {
        for (const text of ["a", "b", "c", "d"]) bus.publish(chunk(`${text}${revision}`))
        bus.publish(phase(revision))
      }
      bus.publish(phase(99))
      assert.deepStrictEqual(yield* Fiber.join(slow), ["run:1", "run:2", "run:3", "run:99"])
      assert.lengthOf(yield* Fiber.join(fast), 16)
    }).pipe(Effect.provide(EventBus.layerMemory))
  )

  it.effect("unsubscribe a subscriber that fails or is interrupted, and end with the bus", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const services = yield* Layer.buildWithScope(EventBus.layerMemory, scope)
      const bus = Context.get(services, EventBus.EventBus)
      const topic = yield* progress("run")
      const failing = yield* Effect.forkChild(
        Effect.exit(Stream.runForEach(bus.subscribe(topic), () => Effect.fail("broken"))),
        { startImmediately: true }
      )
      const idle = yield* Effect.forkChild(Stream.runDrain(bus.subscribe(topic)), { startImmediately: true })
      const open = yield* Effect.forkChild(Stream.runCollect(bus.subscribe(topic)), { startImmediately: true })
      const own = new Address.TopicId({ type: "shop", source: "open", namespace: "default" })
      const silent = yield* Effect.forkChild(Stream.runCollect(bus.subscribe(own)), { startImmediately: true })
      bus.publish(phase(1))
      assert.isTrue(Exit.isFailure(yield* Fiber.join(failing)))
      yield* Fiber.interrupt(idle)
      bus.publish(phase(2))
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual((yield* Fiber.join(open)).map(label), ["run:1", "run:2"])
      assert.deepStrictEqual(yield* Fiber.join(silent), [])
      // A later subscriber receives nothing, and does not wait.
      assert.deepStrictEqual(yield* Stream.runCollect(bus.subscribe(topic)), [])
    })
  )

  it.effect("cost nothing once all subscribers have left: no event is inspected", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.EventBus
      const topic = yield* progress("run")
      let looks = 0
      const watched = {
        ...phase(1),
        get rootRunId() {
          looks++
          return "run"
        }
      }
      const followers = yield* Effect.forEach([1, 2], () =>
        Effect.forkChild(Stream.runDrain(bus.subscribe(topic)), { startImmediately: true })
      )
      bus.publish(watched)
      assert.strictEqual(looks, 1)
      yield* Fiber.interruptAll(followers)
      bus.publish(watched)
      assert.strictEqual(looks, 1)
    }).pipe(Effect.provide(EventBus.layerMemory))
  )
})

describe("EventBus messages", () => {
  it.effect("go to the agent at an address and return its answer", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.EventBus
      const ada = yield* agent("react/ada")
      const bob = yield* agent("react/bob")
      yield* bus.register(ada, (question) => Effect.succeed({ ...question, role: "assistant", name: "ada" }))
      const heard: Array<string> = []
      yield* bus.register(bob, ({ role }) => Effect.sync(() => void heard.push(role)))
      assert.deepStrictEqual(yield* bus.send(ada, message("user", "hi")), {
        ...message("assistant", "hi"),
        name: "ada"
      })
      assert.isUndefined(yield* bus.send(bob, message("user", "hi")))
      assert.deepStrictEqual(heard, ["user"])
    }).pipe(Effect.scoped, Effect.provide(EventBus.layerMemory))
  )

  it.effect("without a handler fail with the address (CP-16)", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.EventBus
      const error = yield* Effect.flip(bus.send(yield* agent("prod/react/ada"), message("user", "hi")))
      assert.deepStrictEqual(error, new EventBus.AgentNotFoundError({ agentId: "prod/react/ada" }))
    }).pipe(Effect.provide(EventBus.layerMemory))
  )

  it.effect("carry the failure of a handler, but not the contents of a defect (CP-16, S-7)", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.EventBus
      const failing = yield* agent("react/failing")
      const dying = yield* agent("react/dying")
      yield* bus.register(failing, () => Effect.fail(new ShopClosed()))
      yield* bus.register(dying, () => Effect.die(new Error("Bearer sk-SECRET-0123456789abcdef")))
      const hi = message("user", "hi")
      assert.strictEqual(
        (yield* Effect.flip(bus.send(failing, hi))).message,
        "the handler of 'react/failing' failed: the shop is closed"
      )
      const error = yield* Effect.flip(bus.send(dying, hi))
      assert.deepStrictEqual(
        error,
        new EventBus.HandlerError({ agentId: "react/dying", detail: "an unexpected defect" })
      )
      assert.notInclude(JSON.stringify(error), "SECRET")
    }).pipe(Effect.scoped, Effect.provide(EventBus.layerMemory))
  )

  it.effect("are received by one handler at a time, while its scope is open", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.EventBus
      const ada = yield* agent("react/ada")
      const answer = (text: string) => bus.register(ada, () => Effect.succeed(message("assistant", text)))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* answer("first")
          const error = yield* Effect.flip(answer("second"))
          assert.deepStrictEqual(error, new EventBus.AgentIdConflict({ agentId: "react/ada" }))
          assert.deepStrictEqual(yield* bus.send(ada, message("user", "?")), message("assistant", "first"))
        })
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* answer("third")
          assert.deepStrictEqual(yield* bus.send(ada, message("user", "?")), message("assistant", "third"))
        })
      )
      assert.strictEqual((yield* Effect.flip(bus.send(ada, message("user", "?"))))._tag, "AgentNotFoundError")
    }).pipe(Effect.provide(EventBus.layerMemory))
  )

  it.effect("are interrupted with their sender, and run with the services of their handler", () =>
    Effect.gen(function* () {
      class Shop extends Context.Service<Shop, { readonly name: string }>()("test/Shop") {}
      const bus = yield* EventBus.EventBus
      const ada = yield* agent("react/ada")
      const bob = yield* agent("react/bob")
      let stopped = false
      yield* bus.register(ada, () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => (stopped = true))))
      yield* Effect.provideService(
        bus.register(bob, () => Effect.map(Shop, ({ name }) => message("assistant", name))),
        Shop,
        { name: "corner" }
      )
      const sending = yield* Effect.forkChild(bus.send(ada, message("user", "?")), { startImmediately: true })
      yield* Fiber.interrupt(sending)
      assert.isTrue(stopped)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(sending)))
      assert.deepStrictEqual(yield* bus.send(bob, message("user", "?")), message("assistant", "corner"))
    }).pipe(Effect.scoped, Effect.provide(EventBus.layerMemory))
  )
})
