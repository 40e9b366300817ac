/**
 * The heart of kernai: words, parts, ports and the one loop, a namespace per module.
 *
 * @since 0.1.0
 */

export * as Address from "./Address.ts"

export * as Agent from "./Agent.ts"

export * as Block from "./Block.ts"

export * as BlockParser from "./BlockParser.ts"

export * as BlockTypes from "./BlockTypes.ts"

export * as Budget from "./Budget.ts"

export * as Call from "./Call.ts"

export * as Chat from "./Chat.ts"

export * as ChatHistory from "./ChatHistory.ts"

export * as Content from "./Content.ts"

export * as Dialect from "./Dialect.ts"

export * as EventBus from "./EventBus.ts"

export * as Generation from "./Generation.ts"

export * as Grammar from "./Grammar.ts"

export * as Hooks from "./Hooks.ts"

export * as InstructionBuilder from "./InstructionBuilder.ts"

export * as Kernel from "./Kernel.ts"

export * as KernelError from "./KernelError.ts"

export * as Limits from "./Limits.ts"

export * as LongResult from "./LongResult.ts"

export * as Media from "./Media.ts"

export * as MediaStore from "./MediaStore.ts"

export * as Memory from "./Memory.ts"

export * as Message from "./Message.ts"

export * as Middleware from "./Middleware.ts"

export * as Model from "./Model.ts"

export * as ModelRegistry from "./ModelRegistry.ts"

export * as PartialOutput from "./PartialOutput.ts"

export * as Plan from "./Plan.ts"

export * as Policy from "./Policy.ts"

export * as PromptPipeline from "./PromptPipeline.ts"

export * as Protocol from "./Protocol.ts"

export * as ProtocolRegistry from "./ProtocolRegistry.ts"

export * as Provider from "./Provider.ts"

export * as Recorder from "./Recorder.ts"

export * as Redaction from "./Redaction.ts"

export * as RunCodec from "./RunCodec.ts"

export * as RunEvent from "./RunEvent.ts"

export * as RunState from "./RunState.ts"

export * as RunStore from "./RunStore.ts"

export * as RunWorker from "./RunWorker.ts"

export * as Skill from "./Skill.ts"

export * as SkillFiles from "./SkillFiles.ts"

export * as SkillPack from "./SkillPack.ts"

export * as SkillRegistry from "./SkillRegistry.ts"

export * as StreamPart from "./StreamPart.ts"

export * as TaskScheduler from "./TaskScheduler.ts"

export * as Telemetry from "./Telemetry.ts"

export * as Usage from "./Usage.ts"
