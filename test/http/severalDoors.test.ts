/** Several doors in one server, each with its own Access. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import { Agent, Kernel, type KernelError, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { Access, HttpKernel, ServedRuns } from "kernai/http"
import { Studio } from "kernai/studio"
import { MockProvider } from "kernai/testing"

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted" })
const token = "t".repeat(43)

const bearer = (expected: string) =>
  Access.bearer((given) =>
    Effect.succeed(Redacted.value(given) === expected ? Option.some({ id: expected }) : Option.none())
  )

const door = (path: `/${string}`, access: Layer.Layer<never>) =>
  Layer.provide(HttpKernel.layer({ agents: [agent], path, openapi: false }), access)

const names = ["ada", "bob", "eve", "studio"] as const

type Door = Layer.Layer<never, KernelError.ConfigInvalid, Layer.Services<ReturnType<typeof door>>>

const doors: { readonly [Name in (typeof names)[number]]: () => Door } = {
  ada: () => door("/ada", bearer("ada")),
  bob: () => door("/bob", bearer("bob")),
  eve: () => door("/eve", bearer("eve")),
  studio: () => Studio.layer({ agents: [agent], path: "/studio", token: Redacted.make(token) })
}
const permutations = <A>(items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  items.length === 0
    ? [[]]
    : items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]))

const kernel = () =>
  Kernel.layer.pipe(
    Layer.provide([MockProvider.layer(), SkillRegistry.layer(), ProtocolRegistry.layer()]),
    Layer.provideMerge([RunStore.layerMemory, MediaStore.layerMemory])
  )

/** Starts a server with these doors, mounted in this order. */
const serve = Effect.fnUntraced(function* (order: ReadonlyArray<(typeof names)[number]>) {
  const routes = order.reduce<Door>((mounted, name) => Layer.merge(mounted, doors[name]()), Layer.empty)
  const server = HttpRouter.serve(Layer.provide(routes, kernel()), {
    disableLogger: true,
    disableListenLog: true
  }).pipe(
    Layer.provideMerge(
      NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: 100 })
    ),
    Layer.orDie
  )
  const { address } = Context.get(yield* Layer.build(server), HttpServer.HttpServer)
  return `http://127.0.0.1:${"port" in address ? address.port : 0}`
})

describe("Three doors and a studio in one server", () => {
  const orders = permutations(names)

  it.live.each(orders.map((order) => [order.join(", "), order] as const))(
    "admit only their own callers, mounted as %s",
    ([, order]) =>
      Effect.gen(function* () {
        const url = yield* serve(order)
        const status = (path: string, headers: Record<string, string>) =>
          Effect.map(
            Effect.promise(() => fetch(`${url}${path}`, { headers })),
            (response) => response.status
          )
        const page = yield* Effect.promise(() =>
          fetch(`${url}/studio/session`, {
            method: "POST",
            headers: { "content-type": "application/json", origin: url },
            body: JSON.stringify({ token })
          })
        )
        const cookie = (page.headers.get("set-cookie") ?? "").split(";")[0] ?? ""
        const callers = {
          ada: { authorization: "Bearer ada" },
          bob: { authorization: "Bearer bob" },
          eve: { authorization: "Bearer eve" },
          studio: { cookie },
          nobody: {}
        }
        for (const [place, path] of [
          ["ada", "/ada/runs"],
          ["bob", "/bob/runs"],
          ["eve", "/eve/runs"],
          ["studio", "/studio/api/runs"],
          ["studio", "/studio/data/runs"]
        ] as const) {
          for (const [caller, headers] of Object.entries(callers)) {
            const expected = caller === place ? 200 : 401
            assert.strictEqual(yield* status(path, headers), expected, `${caller} at ${path}`)
          }
        }
      })
  )
})

describe("One door under two layers of Access", () => {
  it.live("does not start, since one of them would not be asked", () =>
    Effect.gen(function* () {
      const shared = HttpKernel.layer({ agents: [agent], path: "/runs", openapi: false })
      const routes = Layer.merge(Layer.provide(shared, bearer("ada")), Layer.provide(shared, bearer("bob")))
      const started = yield* Effect.exit(Layer.build(Layer.provide(routes, [kernel(), HttpRouter.layer])))
      assert.strictEqual(started._tag, "Failure")
      const once = Layer.merge(shared, Layer.effectDiscard(ServedRuns.ServedRuns).pipe(Layer.provide(shared)))
      yield* Layer.build(Layer.provide(once, [bearer("ada"), kernel(), HttpRouter.layer]))
    }).pipe(Effect.scoped)
  )
})
