/** Agents served on a free port of loopback. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer, Queue, type Scope, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import {
  Agent,
  Kernel,
  type KernelError,
  MediaStore,
  ProtocolRegistry,
  Provider,
  RunStore,
  type Skill,
  SkillRegistry,
  StreamPart
} from "kernai"
import { HttpKernel, HttpKernelClient, type ServedRuns } from "kernai/http"
import { MockProvider } from "kernai/testing"

/** What a server of a test is made of. */
export interface Setup {
  readonly replies?: ReadonlyArray<MockProvider.Reply>
  readonly model?: Provider.ProviderShape
  readonly skills?: ReadonlyArray<Skill.AnySkill<never>>
  readonly store?: RunStore.RunStoreShape
  readonly media?: Layer.Layer<MediaStore.MediaStore>
  readonly agent?: Agent.Agent<unknown>
  readonly options?: Partial<ServedRuns.Options & HttpKernel.RouteOptions>
  /** Further layers: who may, hooks, policies. */
  readonly with?: Layer.Layer<never>
  /** Routes of further protocols. */
  readonly routes?: Layer.Layer<never, KernelError.ConfigInvalid, HttpRouter.HttpRouter | ServedRuns.ServedRuns>
}

export const clerk = Agent.make({
  name: "clerk",
  instructions: "Secret instructions.",
  model: "scripted",
  skills: "all"
})

/** The routes of a server, with everything below them. */
export const app = ({
  agent = clerk,
  media = MediaStore.layerMemory,
  model,
  options,
  replies = [],
  routes = Layer.empty,
  skills = [],
  store,
  with: more = Layer.empty
}: Setup) => {
  const stores = Layer.mergeAll(
    store === undefined ? RunStore.layerMemory : Layer.succeed(RunStore.RunStore, store),
    media
  )
  const kernel = Kernel.layer.pipe(
    Layer.provide([
      Layer.succeed(Provider.Provider, model ?? MockProvider.make(...replies)),
      SkillRegistry.layer(...skills),
      ProtocolRegistry.layer()
    ]),
    Layer.provideMerge(stores)
  )
  return routes.pipe(
    Layer.provideMerge(HttpKernel.layer({ agents: [agent], ...options })),
    Layer.provide(kernel),
    Layer.provide(more),
    Layer.orDie
  )
}

/** Starts a server for the time of the scope. */
export const serve = (setup: Setup): Effect.Effect<{ readonly url: string }, never, Scope.Scope> =>
  Effect.gen(function* () {
    const server = HttpRouter.serve(app(setup), { disableLogger: true, disableListenLog: true }).pipe(
      Layer.provideMerge(
        NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: 100 })
      ),
      Layer.orDie
    )
    const { address } = Context.get(yield* Layer.build(server), HttpServer.HttpServer)
    return { url: `http://127.0.0.1:${"port" in address ? address.port : 0}` }
  })

/** A client of a server. */
export const clientOf = (
  url: string,
  options: Omit<HttpKernelClient.Options, "url"> = {}
): Effect.Effect<HttpKernelClient.Client, never, Scope.Scope> =>
  Effect.map(Layer.build(HttpKernelClient.layer({ url, ...options })), (context) =>
    Context.get(context, HttpKernelClient.HttpKernelClient)
  )

/** A model that says the pieces of a queue as they come, and ends with an empty one. */
export const spoken = (pieces: Queue.Dequeue<string>): Provider.ProviderShape => ({
  name: "spoken",
  stream: () =>
    Stream.fromQueue(pieces).pipe(
      Stream.takeWhile((delta) => delta !== ""),
      Stream.map((delta) => ({ type: "text-delta", id: "0", delta }) as const),
      (deltas) => Stream.concat(Stream.make({ type: "text-start", id: "0" } as const), deltas),
      Stream.concat(
        Stream.make(
          { type: "text-end", id: "0" } as const,
          { type: "finish", reason: "stop", usage: StreamPart.unreported } as const
        )
      )
    )
})

/** Reads the text of a reply from server-sent events until it is so, then leaves. */
export const readUntil = (
  url: string,
  lastId: string | undefined,
  isSo: (text: string) => boolean
): Effect.Effect<{ readonly text: string; readonly lastId: string }> =>
  Effect.promise(async (signal) => {
    const headers: Record<string, string> = lastId === undefined ? {} : { "last-event-id": lastId }
    const response = await fetch(url, { headers, signal })
    let [text, id, rest] = ["", "", ""]
    for await (const chunk of response.body ?? []) {
      const frames = (rest + new TextDecoder().decode(chunk)).split("\n\n")
      rest = frames.pop() ?? ""
      for (const frame of frames) {
        id = /^id: (.*)$/m.exec(frame)?.[1] ?? id
        const event = JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? "{}")
        if (event.type === "text_chunk" || event.type === "block_content") text += event.text
      }
      if (isSo(text)) break
    }
    return { text, lastId: id }
  })
