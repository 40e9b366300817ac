/**
 * The heart of kernai: words, parts, ports and the one loop, a namespace per module.
 *
 * @since 0.1.0
 */

/**
 * @category words
 * @since 0.1.0
 */
export * as Address from "./Address.ts"
/**
 * @category parts
 * @since 0.1.0
 */
export * as Agent from "./Agent.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as Block from "./Block.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as BlockParser from "./BlockParser.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as BlockTypes from "./BlockTypes.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as Budget from "./Budget.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as Call from "./Call.ts"
/**
 * @category loop
 * @since 0.1.0
 */
export * as Chat from "./Chat.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as ChatHistory from "./ChatHistory.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as Content from "./Content.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as Dialect from "./Dialect.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as EventBus from "./EventBus.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as Generation from "./Generation.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as Grammar from "./Grammar.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as Hooks from "./Hooks.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as InstructionBuilder from "./InstructionBuilder.ts"
/**
 * @category loop
 * @since 0.1.0
 */
export * as Kernel from "./Kernel.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as KernelError from "./KernelError.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as Limits from "./Limits.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as LongResult from "./LongResult.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as Media from "./Media.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as MediaStore from "./MediaStore.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as Memory from "./Memory.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as Message from "./Message.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as Middleware from "./Middleware.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as Model from "./Model.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as ModelRegistry from "./ModelRegistry.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as PartialOutput from "./PartialOutput.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as Plan from "./Plan.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as Policy from "./Policy.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as PromptPipeline from "./PromptPipeline.ts"
/**
 * @category parts
 * @since 0.1.0
 */
export * as Protocol from "./Protocol.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as ProtocolRegistry from "./ProtocolRegistry.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as Provider from "./Provider.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as Recorder from "./Recorder.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as Redaction from "./Redaction.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as RunCodec from "./RunCodec.ts"
/**
 * @category parts
 * @since 0.1.0
 */
export * as RunEvent from "./RunEvent.ts"
/**
 * @category parts
 * @since 0.1.0
 */
export * as RunState from "./RunState.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as RunStore from "./RunStore.ts"
/**
 * @category loop
 * @since 0.1.0
 */
export * as RunWorker from "./RunWorker.ts"
/**
 * @category parts
 * @since 0.1.0
 */
export * as Skill from "./Skill.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as SkillFiles from "./SkillFiles.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as SkillPack from "./SkillPack.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as SkillRegistry from "./SkillRegistry.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as StreamPart from "./StreamPart.ts"
/**
 * @category loop
 * @since 0.1.0
 */
export * as TaskScheduler from "./TaskScheduler.ts"
/**
 * @category ports
 * @since 0.1.0
 */
export * as Telemetry from "./Telemetry.ts"
/**
 * @category words
 * @since 0.1.0
 */
export * as Usage from "./Usage.ts"
