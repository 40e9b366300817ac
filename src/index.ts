/**
 * The modules of `kernai`, each as a namespace: agents, skills, the kernel and its stores, policies and events.
 *
 * @since 0.1.0
 */

// ---------------------------------------------------------------- describe agents

export * as Agent from "./Agent.ts"
export * as Skill from "./Skill.ts"
export * as SkillRegistry from "./SkillRegistry.ts"
export * as Protocol from "./Protocol.ts"
export * as ProtocolRegistry from "./ProtocolRegistry.ts"
export * as Program from "./Program.ts"
export * as CodeInterpreter from "./CodeInterpreter.ts"
export * as Dialect from "./Dialect.ts"
export * as InstructionBuilder from "./InstructionBuilder.ts"
export * as LongResult from "./LongResult.ts"

// ---------------------------------------------------------------- choose models

export * as Model from "./Model.ts"
export * as ModelRegistry from "./ModelRegistry.ts"
export * as Provider from "./Provider.ts"
export * as Generation from "./Generation.ts"
export * as StreamPart from "./StreamPart.ts"
export * as Usage from "./Usage.ts"

// ---------------------------------------------------------------- run agents

export * as Kernel from "./Kernel.ts"
export * as RunOptions from "./RunOptions.ts"
export * as RunEvent from "./RunEvent.ts"
export * as PartialOutput from "./PartialOutput.ts"
export * as RunState from "./RunState.ts"
export * as KernelError from "./KernelError.ts"
export * as Plan from "./Plan.ts"
export * as TaskScheduler from "./TaskScheduler.ts"
export * as Simulation from "./Simulation.ts"

// ---------------------------------------------------------------- limit and confirm calls

export * as Policy from "./Policy.ts"
export * as Call from "./Call.ts"
export * as Caller from "./Caller.ts"
export * as Budget from "./Budget.ts"
export * as BudgetStore from "./BudgetStore.ts"
export * as Limits from "./Limits.ts"
export * as Redaction from "./Redaction.ts"

// ---------------------------------------------------------------- change a turn

export * as Hooks from "./Hooks.ts"
export * as Middleware from "./Middleware.ts"
export * as PromptPipeline from "./PromptPipeline.ts"

// ---------------------------------------------------------------- converse and remember

export * as Chat from "./Chat.ts"
export * as ChatHistory from "./ChatHistory.ts"
export * as Memory from "./Memory.ts"
export * as Knowledge from "./Knowledge.ts"

// ---------------------------------------------------------------- store and operate runs

export * as RunStore from "./RunStore.ts"
export * as RunCodec from "./RunCodec.ts"
export * as MediaStore from "./MediaStore.ts"
export * as RunWorker from "./RunWorker.ts"
export * as RunDriver from "./RunDriver.ts"
export * as Schedules from "./Schedules.ts"
export * as Operations from "./Operations.ts"
export * as Processes from "./Processes.ts"
export * as Rollout from "./Rollout.ts"

// ---------------------------------------------------------------- observe runs

export * as EventBus from "./EventBus.ts"
export * as Address from "./Address.ts"
export * as Recorder from "./Recorder.ts"
export * as Telemetry from "./Telemetry.ts"

// ---------------------------------------------------------------- read and write messages

export * as Message from "./Message.ts"
export * as Content from "./Content.ts"
export * as Media from "./Media.ts"
export * as Block from "./Block.ts"
export * as BlockParser from "./BlockParser.ts"
export * as BlockTypes from "./BlockTypes.ts"
