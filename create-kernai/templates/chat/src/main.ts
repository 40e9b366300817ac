import { Effect, Layer } from "effect"
import { Kernel, Message, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { createInterface } from "node:readline"
import { make } from "./chat.ts"

// A scripted companion that repeats what it hears.
const model = MockProvider.layerOf(
  MockProvider.make().onCall(({ messages }) => {
    const last = messages.at(-1)
    return last === undefined ? "Hello." : `You said: ${Message.text(last)}`
  })
)
const live = Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(), model]))

const program = Effect.gen(function* () {
  const chat = yield* make
  const lines = createInterface({ input: process.stdin })
  console.log("Say something; Ctrl-D ends it.")
  yield* Effect.promise(async () => {
    for await (const line of lines) console.log(await Effect.runPromise(Effect.provide(chat.say(line), live)))
  })
})

await Effect.runPromise(program)
