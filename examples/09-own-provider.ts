/**
 * A model of your own: a request in, a stream of parts out.
 *
 * A provider only speaks one wire format; the kernel does the rest. The last part is `finish`: a reply without it was
 * cut, and fails the run.
 *
 * npm run example -- examples/09-own-provider.ts
 */
import { Console, Effect, Layer, Schema, Stream } from "effect"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { Agent, Kernel, Message, Provider, SkillRegistry, StreamPart } from "kernai"

/** The format of the house's model: a JSON document on each line. */
const Line = Schema.fromJsonString(Schema.Struct({ say: Schema.String, tokens: Schema.optionalKey(Schema.Int) }))
const decode = Schema.decodeUnknownEffect(Line)

const failed = (reason: Provider.ProviderError["reason"], detail: string) =>
  new Provider.ProviderError({ provider: "house", reason, detail })

/** The reason of a failure decides whether the call is retried, such as by `Resilience.retry` of `kernai/provider`. */
const reasonOf = (status: number) => (status === 429 ? "rate_limited" : status >= 500 ? "server_error" : "unknown")

const HouseProvider = Layer.effect(
  Provider.Provider,
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    return Provider.Provider.of({
      name: "house",
      stream: ({ messages, model }) =>
        HttpClientRequest.post("http://localhost:9000/talk").pipe(
          HttpClientRequest.bodyJsonUnsafe({
            model: model.id,
            talk: messages.map((message) => `${message.role}: ${Message.text(message)}`)
          }),
          client.execute,
          Effect.mapError((error) => failed("disconnected", error.message)),
          Effect.filterOrFail(
            ({ status }) => status === 200,
            ({ status }) => failed(reasonOf(status), `status ${status}`)
          ),
          HttpClientResponse.stream,
          Stream.decodeText(),
          Stream.splitLines,
          Stream.mapEffect((line) => decode(line)),
          Stream.map(({ say, tokens }) =>
            tokens === undefined
              ? StreamPart.text(say)
              : StreamPart.finish("stop", { inputTokens: {}, outputTokens: { total: tokens } })
          ),
          Stream.mapError((error) =>
            error._tag === "ProviderError" ? error : failed("invalid_response", error.message)
          )
        )
    })
  })
)

// A stand-in for the service: it is busy at first, then it replies.
const answers = [
  new Response("", { status: 503 }),
  new Response(`{"say":"<final>Good "}\n{"say":"evening.</final>"}\n{"say":"","tokens":5}\n`)
]
const HouseLive = Layer.succeed(
  HttpClient.HttpClient,
  HttpClient.make((request) =>
    Effect.sync(() => HttpClientResponse.fromWeb(request, answers.shift() ?? new Response("", { status: 404 })))
  )
)

const KernelLive = Kernel.layerMemory.pipe(
  Layer.provide([SkillRegistry.layer(), HouseProvider.pipe(Layer.provide(HouseLive))])
)

const agent = Agent.make({ instructions: "You greet.", model: "house/small" })

const program = Effect.gen(function* () {
  const busy = yield* Effect.flip(Kernel.run(agent, "Hello!"))
  yield* Console.log(busy._tag === "ProviderError" ? `${busy.reason}: ${busy.message}` : busy.message)
  const { text, usage } = yield* Kernel.run(agent, "Hello!")
  yield* Console.log(text, usage.outputTokens)
})

await Effect.runPromise(Effect.provide(program, KernelLive))

// Prints:
// server_error: house: status 503
// Good evening. 5
