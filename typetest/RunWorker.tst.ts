/**
 * What is inferred of the services a worker's agents need.
 */
import { Context, Effect, type Layer, Schema } from "effect"
import { Agent, Kernel, type KernelError, RunStore, RunWorker } from "kernai"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

class Atlas extends Context.Service<Atlas, { readonly place: Effect.Effect<string> }>()("type/Atlas") {}
class Almanac extends Context.Service<Almanac, { readonly date: Effect.Effect<string> }>()("type/Almanac") {}

const here = Agent.make({ name: "here", instructions: Effect.flatMap(Atlas, ({ place }) => place), model: "m" })
const today = Agent.make({
  name: "today",
  instructions: Effect.flatMap(Almanac, ({ date }) => date),
  model: "m",
  output: Schema.Struct({ n: Schema.Number })
})
const plain = Agent.make({ name: "plain", instructions: "", model: "m" })

type Worker<R> = Layer.Layer<never, KernelError.ConfigInvalid, Kernel.Kernel | RunStore.RunStore | R>

export const one = RunWorker.layer({ agents: [plain], concurrency: 2 })
yes<Equal<typeof one, Worker<never>>>()
export const several = RunWorker.layer({ agents: [here, today, plain] })
yes<Equal<typeof several, Worker<Atlas | Almanac>>>()
export const once = RunWorker.runOnce({ agents: [here, today] })
yes<
  Equal<
    typeof once,
    Effect.Effect<number, KernelError.ConfigInvalid, Kernel.Kernel | RunStore.RunStore | Atlas | Almanac>
  >
>()
export const given = <R>(options: RunWorker.Options<R>): Worker<R> => RunWorker.layer(options)
// @ts-expect-error no option has this name
RunWorker.layer({ agents: [plain], concurency: 2 })

// What is not stored is said by whoever resumes.
export const submitted = Kernel.submit(plain, "hi", { runId: "r", history: [], context: {}, workerId: "w" })
export const restricted = RunWorker.layer({ agents: [plain], resume: () => ({ allowedSkills: ["look"] }) })
export const settled = RunWorker.layer({
  agents: [here],
  resume: ({ runId }) => Effect.map(RunStore.inFlight(runId), (calls) => ({ rewind: calls.length === 0 }))
})
yes<Equal<typeof settled, Worker<Atlas>>>()
// Who looks a call up may need what no agent does.
const dated = ({ runId }: RunStore.RunHead) =>
  Almanac.use(({ date }) => Effect.map(date, (now) => ({ context: { [runId]: now } })))
export const known = RunWorker.layer({ agents: [plain], resume: dated })
yes<Equal<typeof known, Worker<Almanac>>>()
export const both = RunWorker.runOnce({ agents: [plain, here], resume: dated })
yes<
  Equal<
    typeof both,
    Effect.Effect<number, KernelError.ConfigInvalid, Kernel.Kernel | RunStore.RunStore | Atlas | Almanac>
  >
>()
// @ts-expect-error a run that is only stored keeps no list of skills
export const kept = Kernel.submit(plain, "hi", { allowedSkills: ["look"] })
