/** A kernel in memory, and the events of a run by their type. */
import { Layer } from "effect"
import { Kernel, MediaStore, ProtocolRegistry, type RunEvent, RunStore, type Skill, SkillRegistry } from "kernai"

/** What a kernel stands on, with these skills: all but a provider. */
export const ports = (...skills: ReadonlyArray<Skill.AnySkill<MediaStore.MediaStore>>) =>
  Layer.mergeAll(SkillRegistry.layer(...skills), ProtocolRegistry.layer(), RunStore.layerMemory).pipe(
    Layer.provideMerge(MediaStore.layerMemory),
    Layer.orDie
  )

/** The kernel with these skills, and what it stands on; the provider is the run's own. */
export const kernel = (...skills: ReadonlyArray<Skill.AnySkill<MediaStore.MediaStore>>) =>
  Layer.provideMerge(Kernel.layerNoProvider, ports(...skills))

/** The events of one type. */
export const of = <T extends RunEvent.Type>(events: ReadonlyArray<RunEvent.RunEvent>, type: T) =>
  events.filter((event): event is Extract<RunEvent.RunEvent, { readonly type: T }> => event.type === type)
