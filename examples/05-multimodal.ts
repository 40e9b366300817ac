/**
 * Pictures: in the input, made by a skill, and replaced by text for a model that cannot see.
 *
 * Media are stored once per run and referred to by id. A model that cannot accept one reads a placeholder. A skill that
 * requires vision is neither shown to a model without it nor callable by it.
 *
 * npm run example -- examples/05-multimodal.ts
 */
import { Console, Effect, Layer, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Agent, Kernel, Media, MediaStore, Model, ProtocolRegistry, RunStore, Skill, SkillRegistry } from "kernai"
import { OllamaProvider } from "kernai/provider"

const png = (data: string) => Media.fromBytes(Buffer.from(data, "base64"), "image/png")
const photo = png("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")
const chart = png("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC")

// Returns a picture: the model sees it on its next turn, with its id.
const plot = Skill.make("plot", {
  description: "Draws a chart",
  input: Schema.Struct({ title: Schema.String }),
  effects: "read",
  produces: ["image"],
  execute: ({ title }) => Effect.succeed(Skill.result(`A chart of ${title}`, { media: chart }))
})

// Takes a picture by its id, for models with vision only.
const zoom = Skill.make("zoom", {
  description: "Looks closer at a picture of this conversation",
  input: Schema.Struct({ picture: MediaStore.Reference }),
  effects: "read",
  requires: ["vision"],
  execute: ({ picture }) => Effect.succeed(`one red dot, in ${picture.mimeType}`)
})

// The vendor's side: prints the request, and replies from a script.
const Message = Schema.Struct({
  role: Schema.String,
  content: Schema.String,
  images: Schema.optionalKey(Schema.Array(Schema.String))
})
const Body = Schema.fromJsonString(Schema.Struct({ messages: Schema.Array(Message) }))

const vendor = (...replies: ReadonlyArray<string>) => {
  let call = 0
  let known = 0
  return HttpClient.make((request) =>
    Effect.gen(function* () {
      const sent = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
      const { messages } = yield* Effect.orDie(Schema.decodeUnknownEffect(Body)(sent))
      for (const { content, images = [], role } of messages.slice(known)) {
        if (role === "user") yield* Console.log(`  ${content}${images.map(() => " [a picture]").join("")}`)
      }
      known = messages.length
      const line = { message: { role: "assistant", content: replies[call++] }, done: true, done_reason: "stop" }
      return HttpClientResponse.fromWeb(request, new Response(`${JSON.stringify(line)}\n`))
    })
  )
}

const ask = Effect.fn("ask")(function* (model: Model.Model, ...replies: ReadonlyArray<string>) {
  yield* Console.log(`${model.id} reads:`)
  const agent = Agent.make({ instructions: "You look at pictures.", model, skills: [plot, zoom] })
  const provider = yield* Effect.provideService(OllamaProvider.make(), HttpClient.HttpClient, vendor(...replies))
  const result = yield* Kernel.run(agent, ["What is this?", photo], { provider })
  yield* Console.log(`answer: ${result.text}`)
})

const program = Effect.gen(function* () {
  const id = yield* Media.id(chart)
  yield* ask(
    Model.llava,
    `<block type="command" name="plot">{"title": "the dots"}</block>`,
    `<block type="command" name="zoom">{"picture": "${id}"}</block>`,
    `<block type="final">A red dot, and a chart of it.</block>`
  )
  yield* ask(
    Model.llama31,
    `<block type="command" name="zoom">{"picture": "${id}"}</block>`,
    `<block type="final">I cannot see pictures.</block>`
  )
})

const KernelLive = Kernel.layerNoProvider.pipe(
  Layer.provide([SkillRegistry.layer(plot, zoom), ProtocolRegistry.layer(), RunStore.layerMemory]),
  Layer.provide(MediaStore.layerMemory)
)

await Effect.runPromise(Effect.provide(program, KernelLive))

// Prints:
// llava reads:
//   What is this? [a picture]
//   <block type="result" name="plot">A chart of the dots</block><block type="media" id="media_3b37538efb87" kind="image" mime="image/png"/> [a picture]
//   <block type="result" name="zoom">one red dot, in image/png</block>
// answer: A red dot, and a chart of it.
// llama3.1 reads:
//   What is this?[image unavailable: image/png]
//   <block type="error" name="zoom">Skill 'zoom' requires vision</block>
// answer: I cannot see pictures.
