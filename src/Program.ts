/**
 * Agents whose steps are code: a program calls skills and agents and runs its own effects, and each result is recorded.
 *
 * A program is an agent without a model. It runs from its beginning in every process, but a call that is recorded is not
 * made again: the program receives the recorded result. So it continues after a crash, days later and on another
 * machine, with the policies, questions, budgets and events of any agent. A program must make the same calls whenever it
 * runs. Everything that may differ, such as a request to a service, belongs into a skill or a `step`; `Clock` shows the
 * recorded time.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Random } from "effect/Random"
import * as Result from "effect/Result"
import { Scheduler } from "effect/Scheduler"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { Agent } from "./Agent.ts"
import * as Agents from "./Agent.ts"
import { inputReader } from "./internal/program/inputReader.ts"
import { Interpreter } from "./internal/program/interpreter.ts"
import { CallFailed } from "./internal/program/recordedResult.ts"
import { programSkills, stepName } from "./internal/program/programSkills.ts"
import { askName, type Asked, Program } from "./internal/program/session.ts"
import { readAnswer } from "./internal/run/readAnswer.ts"
import * as Input from "./internal/skill/skillInput.ts"
import { ProgramChanged, ProgramFailed, ProgramImpure } from "./KernelError.ts"
import { field } from "./kit/foreignCode.ts"
import { isRecord, type JsonObject } from "./kit/json.ts"
import type { Message } from "./Message.ts"
import type { Model } from "./Model.ts"
import { Capability } from "./Model.ts"
import type { AnySkill, InvalidArguments, Made } from "./Skill.ts"

export { CallFailed, Program, ProgramChanged, ProgramFailed, ProgramImpure }

/**
 * The options of a program. `Input` and `Output` are Schemas, `R` are the services that `run` needs.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<Input extends Codec, Output extends Codec, S, Members, R> extends Partial<
  Pick<Agents.Options<never>, "background" | "budget" | "spawn" | "protocols">
> {
  /** Its purpose, for agents that call it. */
  readonly description?: string | undefined
  /** The input, which the first message of a run holds as JSON. Default: a text. */
  readonly input?: Input | undefined
  /** The result. Default: a text. */
  readonly output?: Output | undefined
  /** The skills that it calls. */
  readonly skills?: S | undefined
  /** The agents that it calls. */
  readonly agents?: ReadonlyArray<Members> | undefined
  /** The version of its steps, which `Program.version` gives to runs that start with it. Default: 1. */
  readonly version?: number | undefined
  /** Maximum number of turns. Calls that are pending together share a turn. Default: 1,000. */
  readonly maxSteps?: number | undefined
  /** The steps. Runs anew in each process, where recorded calls return their results at once. */
  readonly run: (input: Input["Type"]) => Effect.Effect<Output["Type"], unknown, R>
}

/** A Schema that is decoded and encoded without services. */
type Codec = Schema.ConstraintCodec<unknown, unknown>

/**
 * Creates an agent from a program.
 *
 * Its runs are those of any agent: `Kernel.run(invoices, { amount: 5 })`, or with the JSON of it as a text. Fails with `ProgramFailed` if
 * `run` fails or the input does not fit, with `ProgramChanged` if the program no longer makes its recorded calls, and
 * with `ProgramImpure` if it waits for anything but its calls.
 *
 * @example
 * const invoices = Program.make("invoices", {
 *   input: Schema.Struct({ amount: Schema.Finite }),
 *   skills: [pay],
 *   run: ({ amount }) => Program.call(pay, { amount })
 * })
 *
 * @category constructors
 * @since 0.1.0
 */
export function make<
  const Name extends string,
  R = never,
  Input extends Codec = typeof Schema.String,
  Output extends Codec = typeof Schema.String,
  const S extends ReadonlyArray<AnySkill<unknown>> = readonly [],
  const Members extends Agent<unknown, AnySkill<unknown>, unknown, unknown> = never
>(
  name: Name,
  options: Options<Input, Output, S, Members, R>
): Agent<
  Output["Type"],
  Agents.AgentTypes.Skills<S, Members>,
  Exclude<R, Program> | Agents.AgentTypes.Services<S, Members>,
  never,
  Input["Type"]
>
export function make<R>(
  name: string,
  options: Options<
    Codec,
    Codec,
    ReadonlyArray<AnySkill<unknown>>,
    Agent<unknown, AnySkill<unknown>, unknown, unknown>,
    R | Program
  >
): Agent<unknown, AnySkill<unknown>, unknown> {
  const {
    input = Schema.String,
    maxSteps = 1_000,
    output = Schema.String,
    run,
    skills = [],
    version = 1,
    ...rest
  } = options
  const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(output))
  const read = inputReader(input)
  const body = (message: Message | undefined) =>
    read(message).pipe(
      Effect.flatMap(run),
      Effect.flatMap(encode),
      Effect.map((json) => answerText(agent, json))
    )
  const agent: Agent<unknown, AnySkill<unknown>, unknown> = Agents.make({
    ...rest,
    name,
    instructions: "",
    model: modelOf(name),
    dialect: "tools",
    input,
    output,
    skills: [...skills, ...programSkills],
    maxSteps,
    concurrency: 256
  })
  const interpreter = Effect.map(
    Effect.context<R>(),
    (services) => new Interpreter(name, version, (message) => within(services, body(message)))
  )
  return { ...agent, provider: Effect.acquireRelease(interpreter, ({ close }) => close) }
}

/** Returns the text of an answer: JSON, or a text without quotes where it is read as the same text. */
const answerText = (agent: Agent<unknown, AnySkill<unknown>, unknown>, json: Schema.Json): string => {
  if (typeof json !== "string" || json.trim() === "") return JSON.stringify(json)
  const read = readAnswer(agent, json)
  return Result.isSuccess(read) && read.success.text === json && read.success.output === json
    ? json
    : JSON.stringify(json)
}

/** Provides the services of a program below what makes it repeatable. */
const within = <A, E, R>(
  services: Context.Context<R>,
  body: Effect.Effect<A, E, R | Program>
): Effect.Effect<A, E, Program> =>
  Effect.updateContext(body, (own: Context.Context<Program>) => Context.merge(services, own))

/** The model of a program. It costs nothing, and no skill asks more of a model than it has. */
const modelOf = (name: string): Model => ({
  id: name,
  provider: "program",
  capabilities: Capability.literals,
  price: { inputPerMillion: 0, outputPerMillion: 0 }
})

// ---------------------------------------------------------------- calls

/**
 * Calls a skill and returns its recorded result. The skill must be one of the program's `skills`.
 *
 * A result is read from its record: an object, a list, a number or a text. Fails with the failures that the skill
 * declares as its `failure`, and with `CallFailed` if it fails otherwise, is denied, or runs out of time.
 *
 * @example
 * const receipt = yield* Program.call(pay, { amount: 5 })
 *
 * @category calls
 * @since 0.1.0
 */
export function call<const Name extends string, Input, Output, R, P, D, F>(
  skill: Made<Name, Input, Output, R, P, D, F>,
  input: Input
): Effect.Effect<Output, (unknown extends F ? never : F) | CallFailed | InvalidArguments, Program | D>
export function call<Input, D>(
  skill: Made<string, Input, unknown, unknown, unknown, D>,
  input: Input
): Effect.Effect<unknown, unknown, Program | D> {
  const { failure, name, output } = skill
  const call = Effect.flatMap(skill.encode(input), (input) => made({ label: name, name, input }))
  const result = failure === undefined ? call : Effect.catchTag(call, "CallFailed", typedFailure(failure))
  if (output === undefined) return result
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(output))
  return Effect.flatMap(result, (json) =>
    Effect.mapError(
      decode(json),
      ({ message }) => new CallFailed({ call: name, error: "OutputInvalid", detail: message })
    )
  )
}

/** Returns a failed call that fails with its failure as the skill declares it, if it fits. */
const typedFailure = (schema: Codec) => (failed: CallFailed) => {
  const { error, fields } = failed
  // The tag is stored as the name of the error.
  const encoded = isRecord(fields) ? { _tag: error, ...fields } : fields
  const decoded = Schema.decodeUnknownEffect(Schema.toCodecJson(schema))(encoded)
  return Effect.matchEffect(decoded, {
    onSuccess: (failure) => Effect.fail(failure),
    onFailure: () => Effect.fail(failed)
  })
}

/**
 * Runs an effect once and returns its recorded result, which must be JSON: an object, a list, a number or a text.
 *
 * It is a call of the skill `program_step` with the name of the step, so a policy can decide about it. Its effects are
 * `write`: if a process dies while it runs, the run fails with `InFlightToolCalls`, and `recover` decides.
 *
 * @example
 * const order = yield* Program.step("match", Books.match(fields))
 *
 * @category calls
 * @since 0.1.0
 */
export function step<A, E, R>(name: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, CallFailed, R | Program>
export function step<R>(
  name: string,
  effect: Effect.Effect<unknown, unknown, R>
): Effect.Effect<unknown, CallFailed, R | Program> {
  return Effect.contextWith((own: Context.Context<R>) => {
    const given = Effect.map(outside(own, effect), (value) => ({ value: value === undefined ? null : value }))
    const result = made({ label: name, name: stepName, input: { name }, effect: given })
    return Effect.map(result, (given) => field(given, "value"))
  })
}

/**
 * Waits for an effect that is no call, such as an interpreter in another thread. It is not recorded and runs again in
 * each replay, so it must return the same result every time and change nothing.
 *
 * @example
 * const rows = yield* Program.compute(Parser.parse(text))
 *
 * @category calls
 * @since 0.1.0
 */
export const compute = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Program> =>
  Effect.contextWith((own: Context.Context<R>) => Program.use(({ compute }) => compute(outside(own, effect))))

/**
 * Asks an agent of the program's `agents`, as a run below the program, and returns its answer. `input` is a text, or a
 * value of the agent's `input`.
 *
 * @example
 * const fields = yield* Program.ask(extractor, "Invoice 7 …")
 *
 * @category calls
 * @since 0.1.0
 */
export function ask<Output, S extends AnySkill<unknown>, R, C, I>(
  agent: Agent<Output, S, R, C, I>,
  input: string | Agents.InputOf<NoInfer<I>>
): Effect.Effect<Output, CallFailed, Program>
/**
 * Asks a person, or waits for a signal: the run rests until `Kernel.answer` gives the values of the form. Fails with
 * `CallFailed` if the question is declined. Without an answer `within` the time, the `error` of it is `NotAnswered`.
 *
 * @example
 * const { account } = yield* Program.ask("Which account?", { form: Schema.Struct({ account: Schema.String }) })
 *
 * @category calls
 * @since 0.1.0
 */
export function ask<Form extends Codec>(
  message: string,
  options: Within & { readonly form: Form }
): Effect.Effect<Form["Type"], CallFailed, Program>
export function ask(
  whom: Agent<unknown, AnySkill<unknown>, unknown, unknown> | string,
  about: unknown
): Effect.Effect<unknown, CallFailed, Program> {
  if (typeof whom !== "string") return askAgent(whom, about)
  return isForm(about) ? askPerson(whom, about) : Effect.die(new Error("a question to a person has a form"))
}

/**
 * Asks a person to agree. Fails with `CallFailed` if the person declines. Without an answer `within` the time, the
 * `error` of it is `NotAnswered`.
 *
 * @example
 * if (amount > 1000) yield* Program.confirm(`Pay ${amount}?`, { within: "2 days" })
 *
 * @category calls
 * @since 0.1.0
 */
export const confirm = (message: string, options: Within = {}): Effect.Effect<void, CallFailed, Program> =>
  Effect.asVoid(asked(message, options, {}))

/**
 * How long a question waits for its answer.
 *
 * @category models
 * @since 0.1.0
 */
export interface Within {
  /** Default: until it is answered. */
  readonly within?: Duration.Input | undefined
}

/**
 * Waits, as `Effect.sleep` does in a program. A run that waits for longer than a minute leaves its process: a worker
 * wakes it, or a resume after that time continues it.
 *
 * @category calls
 * @since 0.1.0
 */
export const sleep = (duration: Duration.Input): Effect.Effect<void, never, Program> =>
  Program.use(() => Effect.sleep(duration))

/**
 * Returns the version of the program that its run started with. A changed program keeps making the calls of older runs.
 *
 * @example
 * if ((yield* Program.version) >= 2) yield* Program.step("audit", Audit.note(order))
 *
 * @category getters
 * @since 0.1.0
 */
export const version: Effect.Effect<number, never, Program> = Program.useSync(({ version }) => version)

const askAgent = (
  agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>,
  input: unknown
): Effect.Effect<unknown, CallFailed, Program> => {
  const { name } = agent
  const failed = (error: string) => (detail: unknown) => new CallFailed({ call: name, error, detail: String(detail) })
  const encoded = Input.fromSchema(agent.input ?? Schema.String).encode(input)
  return Effect.mapError(encoded, failed("InvalidInput")).pipe(
    Effect.flatMap((input) => made({ label: name, name, input })),
    Effect.flatMap((text) =>
      Effect.fromResult(readAnswer(agent, String(text))).pipe(Effect.mapError(failed("OutputInvalid")))
    ),
    Effect.map(({ output }) => output)
  )
}

interface Form extends Within {
  readonly form: Codec
}

const isForm = (about: unknown): about is Form => Schema.isSchema(field(about, "form"))

const askPerson = (message: string, { form, within }: Form): Effect.Effect<unknown, CallFailed, Program> =>
  asked(message, { within }, { form: Input.fromSchema(form).schema() }).pipe(
    Effect.flatMap((values) => Schema.decodeUnknownEffect(Schema.toCodecJson(form))(values)),
    Effect.catchTag("SchemaError", ({ message }) =>
      Effect.fail(new CallFailed({ call: askName, error: "InvalidAnswer", detail: message }))
    )
  )

/** Asks a person and returns the values of the answer. */
const asked = (message: string, { within }: Within, more: JsonObject): Effect.Effect<unknown, CallFailed, Program> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const answerBy = within === undefined ? {} : { answerBy: now + Duration.toMillis(within) }
    const result = made({ label: message, name: askName, input: { message, ...more, ...answerBy } })
    return Effect.map(result, (given) => field(given, "values"))
  })

const made = (asked: Asked): Effect.Effect<unknown, CallFailed, Program> =>
  Program.use((program) => Effect.map(program.call(asked), ({ value }) => value))

/** Gives an effect the services and the scope of the program, but the real time and chance, and no calls. */
const outside = <A, E, R>(own: Context.Context<R>, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E> =>
  Effect.updateContext(effect, (current: Context.Context<never>) =>
    Context.merge(own, Context.omit(Scope.Scope)(current)).pipe(
      Context.add(Clock.Clock, Context.get(current, Clock.Clock)),
      Context.add(Random, Context.get(current, Random)),
      Context.add(Scheduler, Context.get(current, Scheduler)),
      Context.add(Program, noCalls)
    )
  )

const noCalls: Program["Service"] = {
  version: 0,
  call: () => Effect.die(new Error("a step makes no calls of its program")),
  compute: (effect) => effect
}
