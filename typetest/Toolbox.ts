/** What the parts of the toolbox ask for is what their layers need. */
import { Context, Effect, type Layer } from "effect"
import {
  Address,
  Agent,
  Content,
  Hooks,
  type KernelError,
  Memory,
  Policy,
  PromptPipeline,
  Provider,
  SkillRegistry
} from "kernai"
import { SkillPack } from "kernai/file"

type Equals<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const check = <T extends true>(): T | undefined => undefined

export const plain = PromptPipeline.layer()
check<Equals<typeof plain, Layer.Layer<never, never, never>>>()

export const sections = PromptPipeline.layer({
  sections: [SkillPack.section, Memory.section({ limit: 3 }), () => Effect.succeed("")]
})
check<Equals<typeof sections, Layer.Layer<never, never, SkillPack.SkillPackStore | Memory.Memory>>>()

export const summarizing = PromptPipeline.layer({
  sections: [Memory.section()],
  compaction: { summarize: PromptPipeline.summarizer() }
})
check<Equals<typeof summarizing, Layer.Layer<never, never, Memory.Memory>>>()

class House extends Context.Service<House, { readonly rules: string; readonly brief: Effect.Effect<string> }>()(
  "House"
) {}

export const inline = PromptPipeline.layer({
  sections: [Memory.section(), ({ state }) => House.use(({ rules }) => Effect.succeed(rules + state.runId))],
  template: (text, { instructions }) => House.use(({ rules }) => Effect.succeed(text + rules + instructions))
})
check<Equals<typeof inline, Layer.Layer<never, never, Memory.Memory | House>>>()

export const briefed = PromptPipeline.make({
  sections: [SkillPack.section],
  compaction: {
    summarize: (messages, { model }) =>
      House.use(({ brief }) => Effect.map(brief, (text) => text + model.id + messages.length))
  }
})
check<
  Equals<typeof briefed, Effect.Effect<PromptPipeline.PromptPipelineShape, never, SkillPack.SkillPackStore | House>>
>()

// A part that may be undefined may be left out, and needs what it needs.
export const maybe = (isWhole: boolean) =>
  PromptPipeline.layer({
    template: isWhole ? (text) => House.use(({ rules }) => Effect.succeed(text + rules)) : undefined,
    sections: isWhole ? [Memory.section()] : undefined,
    compaction: { summarize: isWhole ? () => Provider.Provider.use(({ name }) => Effect.succeed(name)) : undefined }
  })
check<Equals<ReturnType<typeof maybe>, Layer.Layer<never, never, House | Memory.Memory | Provider.Provider>>>()
const given = <R>(options: PromptPipeline.Options<R>) => PromptPipeline.layer(options)
check<Equals<ReturnType<typeof given<House>>, Layer.Layer<never, never, House>>>()

export const unset = PromptPipeline.make()
check<Equals<typeof unset, Effect.Effect<PromptPipeline.PromptPipelineShape, never, never>>>()

export const remembering = SkillRegistry.layer(...Memory.skills)
check<
  Equals<typeof remembering, Layer.Layer<SkillRegistry.SkillRegistry, KernelError.ToolNameConflict, Memory.Memory>>
>()

export const ruled = Policy.layerRules({ default: "effects" })
check<Equals<typeof ruled, Layer.Layer<never, KernelError.ConfigInvalid, never>>>()

// @ts-expect-error a verdict nobody knows
Policy.rules({ default: "maybe" })
// @ts-expect-error a rule is about a tool
Policy.rules({ deny: [{ reason: "no" }] })

// What may be left out of an option may be undefined as well: nobody has to leave it out by a spread.
export const leftOut = {
  budget: Agent.make({ instructions: "", model: "m", budget: { maxTokens: undefined, deadline: undefined } }),
  hooks: Hooks.layer({
    onTurnPrepared: ({ prepared }) =>
      Effect.succeed({
        context: undefined,
        value: { ...prepared, model: undefined, generation: undefined },
        control: undefined
      })
  }),
  unheard: Hooks.layer({ onTurnPrepared: () => Effect.succeed({ value: undefined }) }),
  pipeline: PromptPipeline.PromptPipeline.of({
    build: ({ instructions, tools }) =>
      Effect.succeed({
        system: instructions,
        tools,
        messages: undefined,
        generation: undefined,
        cacheBreakpoints: undefined,
        spent: undefined
      })
  }),
  address: Address.AgentId.of({ type: "a", key: "b", namespace: undefined }),
  result: Content.toolResult("id", "done", { isError: undefined })
}
