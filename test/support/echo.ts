/** An agent that may call `echo`, and runs of it with scripted replies. */
import { Effect, Schema, Stream } from "effect"
import { Agent, Kernel, Model, type RunEvent, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { command } from "./blocks.ts"

export const echo = Skill.make("echo", {
  description: "Says it again",
  input: Schema.Struct({ text: Schema.String }),
  effects: "read",
  execute: ({ text }) => Effect.succeed(`echo:${text}`)
})

export class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String }) {}

export const act = (text: string) => command("echo", text)

export const agent = Agent.make({ instructions: "You test.", model: Model.textOnly, skills: "all" })

/** Runs an agent with scripted replies and returns its events and exit. */
export const told = Effect.fnUntraced(function* <O, S extends Skill.AnySkill<unknown>>(
  agent: Agent.Agent<O, S>,
  replies: ReadonlyArray<MockProvider.Reply>,
  options: Kernel.RunOptions = {}
) {
  const mock = MockProvider.make(...replies)
  const events: Array<RunEvent.RunEvent<O, S>> = []
  const exit = yield* Effect.exit(
    Kernel.stream(agent, "go", { provider: mock, ...options }).pipe(
      Stream.runForEach((event) => Effect.sync(() => events.push(event)))
    )
  )
  return { events, exit, mock, types: events.map((event) => event.type) }
})
