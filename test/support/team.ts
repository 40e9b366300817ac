/** What tests of several agents share: agents that each follow a script of their own. */
import { Effect, Stream } from "effect"
import { Agent, type Provider } from "kernai"
import { MockProvider } from "kernai/testing"

/** What the agents say, by the names of their models: the reply to a conversation with so many answers in it. */
export type Voices = { readonly [model: string]: ReadonlyArray<MockProvider.Reply> }

/** A provider of all agents, and the requests it was asked with. */
export const voices = (script: Voices) => {
  const requests: Array<Provider.Request> = []
  const mock = MockProvider.make().onCall((request) => {
    requests.push(request)
    const said = request.messages.filter(({ role }) => role === "assistant").length
    const lines = script[request.model.id] ?? []
    return lines[Math.min(said, lines.length - 1)] ?? `no line for ${request.model.id}`
  })
  return { provider: mock, requests }
}

/** The model of an agent, by which `voices` finds its script. */
export const model = (id: string) => ({ id, capabilities: ["text"] as const })

/** An agent in native calls whose model has its name. */
export const native = <const Name extends string>(name: Name, options: Partial<Agent.Options<never>> = {}) =>
  Agent.make({ name, instructions: `You are ${name}.`, model: model(name), dialect: "tools", ...options })

/** A native call. */
export const call = (name: string, params: object = {}, id: string = name): MockProvider.Reply => ({
  calls: [{ id, name, input: params }]
})

/** Several native calls in one reply. */
export const calls = (...all: ReadonlyArray<readonly [name: string, params: object]>): MockProvider.Reply => ({
  calls: all.map(([name, input], index) => ({ id: `${name}-${index}`, name, input }))
})

/** The texts of the last request of a model, results of calls included. */
export const lastAsked = (requests: ReadonlyArray<Provider.Request>, id: string): ReadonlyArray<string> =>
  requests
    .filter((request) => request.model.id === id)
    .at(-1)
    ?.messages.slice(1)
    .flatMap(({ content }) => content.flatMap(textsOf)) ?? []

const textsOf = (part: { readonly type: string }): ReadonlyArray<string> => {
  if ("text" in part && typeof part.text === "string") return [part.text]
  return "content" in part && Array.isArray(part.content) ? part.content.flatMap(textsOf) : []
}

/** A provider that takes so long for each reply. */
export const slowly = (provider: Provider.ProviderShape, delay: number): Provider.ProviderShape => ({
  ...provider,
  stream: (request) => Stream.unwrap(Effect.as(Effect.sleep(delay), provider.stream(request)))
})
