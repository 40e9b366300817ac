/** Programs made at random: calls of every kind, one after the other and at once, with failures, waits and questions. */
import { Duration, Effect, Layer, Random, Schedule, Schema, identity } from "effect"
import { Agent, Policy, Program, Skill, SkillRegistry } from "kernai"
import { MockProvider, type CrashMatrix } from "kernai/testing"
import { randomOf } from "./random.ts"

/** A part of a program, which gives a number. */
type Part =
  | { readonly _tag: "Read" | "Pay" | "Step" | "Refused" | "Sleep" | "Confirm" | "Ask" | "Chance"; readonly of: number }
  | { readonly _tag: "Sequence" | "AtOnce"; readonly parts: ReadonlyArray<Part> }
  | { readonly _tag: "Retry" | "Timeout"; readonly part: Part }

const leaves = ["Read", "Read", "Pay", "Step", "Refused", "Sleep", "Confirm", "Ask", "Chance"] as const

const partOf = (next: () => number, depth: number): Part => {
  const pick = <A>(from: ReadonlyArray<A>, otherwise: A): A => from[Math.floor(next() * from.length)] ?? otherwise
  const kind = depth === 0 ? 0 : next()
  if (kind < 0.55) return { _tag: pick(leaves, "Read"), of: Math.floor(next() * 100) }
  if (kind > 0.9) return { _tag: pick(["Retry", "Timeout"], "Retry"), part: partOf(next, depth - 1) }
  const parts = Array.from({ length: 2 + Math.floor(next() * 2) }, () => partOf(next, depth - 1))
  return { _tag: pick(["Sequence", "AtOnce"], "Sequence"), parts }
}

const number = Schema.Struct({ of: Schema.Finite })

const read = Skill.make("read", {
  description: "Reads",
  input: number,
  effects: "read",
  execute: ({ of }) => Effect.as(Effect.sleep(of), of + 1)
})
const pay = Skill.make("pay", { description: "Pays", input: number, execute: ({ of }) => Effect.succeed({ paid: of }) })
const refuse = Skill.make("refuse", {
  description: "Fails",
  input: number,
  effects: "idempotent",
  execute: ({ of }) => Effect.fail({ _tag: "Refused", message: `no ${of}` })
})
const clerk = Agent.make({ name: "clerk", instructions: "", model: "m", dialect: "tools", output: Schema.Finite })

type Result = Effect.Effect<number, unknown, Program.Program>

const resultOf = (part: Part): Result => {
  switch (part._tag) {
    case "Read":
      return Program.call(read, { of: part.of })
    case "Pay":
      return orRefused(Effect.map(Program.call(pay, { of: part.of }), ({ paid }) => paid))
    case "Step":
      return Program.step(`step ${part.of}`, Effect.succeed(part.of * 2))
    case "Refused":
      return orRefused(Effect.as(Program.call(refuse, { of: part.of }), 0))
    case "Sleep":
      return Effect.as(Program.sleep(Duration.minutes(part.of)), 1)
    case "Confirm":
      return orRefused(Effect.as(Program.confirm(`Go on with ${part.of}?`), part.of))
    case "Ask":
      return Program.ask(clerk, `How many of ${part.of}?`)
    case "Chance":
      return Effect.flatMap(Random.nextIntBetween(0, 1_000), (of) => Program.call(read, { of }))
    case "Sequence":
      return sum(Effect.all(part.parts.map(resultOf)))
    case "AtOnce":
      return sum(Effect.all(part.parts.map(resultOf), { concurrency: "unbounded" }))
    case "Retry": {
      const failing = Program.step("flaky", Effect.fail("busy"))
      const again = Effect.retry(failing, Schedule.spaced("1 minute").pipe(Schedule.upTo({ times: 1 })))
      return Effect.andThen(Effect.ignore(again), resultOf(part.part))
    }
    case "Timeout":
      return Effect.timeoutOrElse(resultOf(part.part), { duration: "30 minutes", orElse: () => Effect.succeed(-1) })
  }
}

/** Takes another way after a failure, such as the refusal of a person. */
const orRefused = (part: Result): Result => Effect.catch(part, (failure) => Effect.succeed(-String(failure).length))

const sum = (all: Effect.Effect<ReadonlyArray<number>, unknown, Program.Program>): Result =>
  Effect.map(all, (numbers) => numbers.reduce((a, b) => a + b, 0))

const numberIn = (callId: string): number => Array.from(callId).reduce((sum, char) => sum + char.charCodeAt(0), 0)

/**
 * Leaves out limits of time, and waits beside other parts. Runs beside each other let time pass for each other, in
 * another order after a crash: a wait that is over when its turn comes is not sent, and a limit may end its part.
 */
const untimed = (part: Part, isBeside = false): Part => {
  switch (part._tag) {
    case "Timeout":
      return untimed(part.part, isBeside)
    case "Retry":
      return isBeside ? untimed(part.part, true) : { ...part, part: untimed(part.part) }
    case "Sequence":
      return { ...part, parts: part.parts.map((one) => untimed(one, isBeside)) }
    case "AtOnce":
      return { ...part, parts: part.parts.map((one) => untimed(one, true)) }
    case "Sleep":
      return isBeside ? { _tag: "Step", of: part.of } : part
    default:
      return part
  }
}

/** A program made from a number, which may be called in the background. It is the longer, the deeper it goes. */
export const randomProgram = (
  seed: number,
  depth = 2,
  change: (part: Part) => Part = identity
): Agent.Agent<number> => {
  const next = randomOf(seed)
  const parts = Array.from({ length: 1 + Math.floor(next() * (depth + 1)) }, () => change(partOf(next, depth)))
  return Program.make(`random-${seed}`, {
    background: true,
    output: Schema.Finite,
    agents: [clerk],
    skills: [read, pay, refuse],
    run: () => resultOf({ _tag: "Sequence", parts })
  })
}

/**
 * A random program as the subject of a crash matrix: payments need an agreement. A person refuses every third question,
 * the same ones in every process, and is late for none.
 */
export const randomSubject = (seed: number): CrashMatrix.Subject =>
  subjectOf(seed, randomProgram(seed), MockProvider.make("7"))

/**
 * An agent as the subject of a crash matrix that calls random programs, most of them in the background. It answers with
 * the sum of their results.
 */
export const backgroundSubject = (seed: number): CrashMatrix.Subject => {
  const next = randomOf(seed)
  const programs = Array.from({ length: 3 }, (_, index) => randomProgram(seed * 3 + index, 1, untimed))
  let open = 0
  const replies = Array.from({ length: 1 + Math.floor(next() * 3) }, () => ({
    calls: Array.from({ length: 1 + Math.floor(next() * 2) }, (_, index) => {
      const background = next() < 0.8
      if (background) open++
      const name = programs[Math.floor(next() * programs.length)]?.name ?? ""
      return { id: `call-${index}`, name, input: { input: "go", background } }
    })
  }))
  const model = MockProvider.make().onCall(({ messages, model }) => {
    if (model.id !== "lead") return "7"
    const reply = replies[messages.filter(({ role }) => role === "assistant").length]
    if (reply !== undefined) return reply
    const ended = [...JSON.stringify(messages).matchAll(/block type=\W+result\W+ name=\W+[\w-]+\W+ id=[^>]*>(-?\d+)/g)]
    return ended.length < open ? "I wait." : String(ended.reduce((sum, [, number]) => sum + Number(number), 0))
  })
  const lead = Agent.make({
    name: `lead-${seed}`,
    instructions: "",
    model: "lead",
    dialect: "tools",
    agents: programs
  })
  return subjectOf(seed, lead, model)
}

const subjectOf = (seed: number, agent: Agent.Agent<unknown>, model: MockProvider.Mock): CrashMatrix.Subject => ({
  agent,
  input: "go",
  answer: (_, questions) => ({
    answers: questions.map(({ callId }) => ({ callId, approved: (seed + numberIn(callId)) % 3 > 0 }))
  }),
  layer: Layer.mergeAll(
    SkillRegistry.layer(),
    MockProvider.layerOf(model),
    Policy.layer(({ input, name }) =>
      Effect.succeed(
        name === "pay" && Schema.is(number)(input) && input.of % 2 === 0 ? Policy.confirm("pay?") : Policy.allowed
      )
    )
  )
})
