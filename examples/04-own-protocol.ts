/**
 * A protocol of your own: an agent that talks to other agents.
 *
 * A skill has parameters; a protocol has a block type and receives the whole block. The model reads the documentation
 * of the protocol with `/protocols`.
 *
 * npm run example -- examples/04-own-protocol.ts
 */
import { Console, Context, Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, Protocol } from "kernai"
import { MockProvider } from "kernai/testing"

// The agents that can be reached are a service, so the protocol does not depend on how.
class Directory extends Context.Service<
  Directory,
  { readonly ask: (agent: string, message: string) => Effect.Effect<string, NobodyThere> }
>()("example/Directory") {}

class NobodyThere extends Schema.TaggedError<NobodyThere>()("NobodyThere", { agent: Schema.String }) {
  override get message() {
    return `no agent is called ${this.agent}`
  }
}

const Request = Schema.fromJsonString(Schema.Struct({ to: Schema.String, message: Schema.String }))

const a2a = Protocol.make("a2a", {
  documentation: `Asks another agent. The content is a JSON object with "to" and "message".
Agents: travel (trains and hotels), weather (forecasts).
<block type="a2a">{"to": "weather", "message": "Will it rain in Bergen?"}</block>`,
  effects: "read",
  handle: (block) =>
    Effect.gen(function* () {
      const { message, to } = yield* Schema.decodeUnknownEffect(Request)(block.content)
      const directory = yield* Directory
      return { from: to, reply: yield* directory.ask(to, message) }
    })
})

const DirectoryLive = Layer.succeed(Directory, {
  ask: (agent, message) =>
    agent === "weather" ? Effect.succeed(`${message} Yes, it will.`) : Effect.fail(new NobodyThere({ agent }))
})

// Every agent may use a registered protocol unless it lists its protocols.
const agent = Agent.make({ instructions: "You plan trips with the help of other agents.", model: "scripted" })

const program = Kernel.stream(agent, "Do I need an umbrella in Bergen?").pipe(
  Stream.runForEach((event) => {
    switch (event.type) {
      case "builtin_result":
        return Console.log(`${event.command} says:\n${event.result}`)
      case "protocol_result":
        return Console.log(`${event.protocol} gave ${JSON.stringify(event.result)}`)
      case "protocol_error":
        return Console.log(`${event.protocol} failed: ${event.error}`)
      case "final":
        return Console.log(event.text)
      default:
        return Effect.void
    }
  })
)

const KernelLive = Kernel.layerWith({
  provider: MockProvider.layer(
    `<block type="command" name="/protocols"></block>`,
    `<block type="a2a">{"to": "oracle", "message": "Umbrella?"}</block>`,
    `<block type="a2a">{"to": "weather", "message": "Will it rain in Bergen?"}</block>`,
    `<block type="final">Take one.</block>`
  ),
  protocols: [a2a]
}).pipe(Layer.provide(DirectoryLive))

await Effect.runPromise(Effect.provide(program, KernelLive))

// Prints:
// /protocols says:
// [{"name":"a2a","documentation":"Asks another agent. The content is a JSON object with \"to\" and \"message\".\nAgents: travel (trains and hotels), weather (forecasts).\n<block type=\"a2a\">{\"to\": \"weather\", \"message\": \"Will it rain in Bergen?\"}</block>"}]
// a2a failed: no agent is called oracle
// a2a gave {"from":"weather","reply":"Will it rain in Bergen? Yes, it will."}
// Take one.
