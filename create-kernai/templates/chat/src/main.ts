import { Console, Effect, Layer, Stream } from "effect"
import { ChatHistory, Kernel, Message, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { say } from "./chat.ts"
import { lines } from "./lines.ts"

// A scripted companion that repeats each message.
const model = MockProvider.layerOf(
  MockProvider.make().onCall(({ messages }) => {
    const last = messages.at(-1)
    return last === undefined ? "Hello." : `You said: ${Message.text(last)}`
  })
)
// `SqlChatHistory.layerSqlite("me", "talk.db")` of `kernai/sql` remembers across processes.
const live = Layer.merge(
  Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(), model])),
  ChatHistory.layerMemory
)

const said = Stream.fromAsyncIterable<string, unknown>(process.stdin.setEncoding("utf8"), (error) => error).pipe(
  Stream.orDie,
  lines()
)

const program = Effect.gen(function* () {
  yield* Console.log("Say something; Ctrl-D ends it.")
  yield* Stream.runForEach(said, (line) => Effect.flatMap(say(line), Console.log))
})

await Effect.runPromise(Effect.provide(program, live))
