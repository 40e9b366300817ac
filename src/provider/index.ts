/**
 * Providers: the models of many vendors, each behind its own wire format.
 *
 * @since 0.1.0
 */

export * as AiSdkProvider from "./AiSdkProvider.ts"
export * as AiSdkTools from "./AiSdkTools.ts"
export * as AiTokenizer from "./AiTokenizer.ts"
export * as AnthropicProvider from "./AnthropicProvider.ts"
export * as EmbeddingMemory from "./EmbeddingMemory.ts"
export * as GeminiInteractionsProvider from "./GeminiInteractionsProvider.ts"
export * as GeminiProvider from "./GeminiProvider.ts"
export * as Grammar from "./Grammar.ts"
export * as HostedTools from "./HostedTools.ts"
export * as HttpModelRegistry from "./HttpModelRegistry.ts"
export * as MessageEncoder from "./MessageEncoder.ts"
export * as OllamaProvider from "./OllamaProvider.ts"
export * as OpenAiCompatibleProvider from "./OpenAiCompatibleProvider.ts"
export * as OpenAiProvider from "./OpenAiProvider.ts"
export * as KernaiLanguageModel from "./KernaiLanguageModel.ts"
export * as LanguageModelProvider from "./LanguageModelProvider.ts"
export * as Resilience from "./Resilience.ts"
export * as SkillTools from "./SkillTools.ts"
