import { Console, Effect, Layer, Stream } from "effect"
import { Kernel, Message, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { make } from "./chat.ts"
import { lines } from "./lines.ts"

// A scripted companion that repeats what it hears.
const model = MockProvider.layerOf(
  MockProvider.make().onCall(({ messages }) => {
    const last = messages.at(-1)
    return last === undefined ? "Hello." : `You said: ${Message.text(last)}`
  })
)
const live = Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(), model]))

const said = Stream.fromAsyncIterable(lines(process.stdin.setEncoding("utf8")), (error) => error)

const program = Effect.gen(function* () {
  const chat = yield* make
  yield* Console.log("Say something; Ctrl-D ends it.")
  yield* Stream.runForEach(said, (line) => Effect.flatMap(chat.say(line), Console.log))
})

await Effect.runPromise(Effect.provide(program, live))
