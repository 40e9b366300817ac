/**
 * Providers: the models of the world, each behind its own wire format.
 *
 * @since 0.1.0
 */

/**
 * @category bridges
 * @since 0.1.0
 */
export * as AiSdkProvider from "./AiSdkProvider.ts"
/**
 * @category counters
 * @since 0.1.0
 */
export * as AiTokenizer from "./AiTokenizer.ts"
/**
 * @category providers
 * @since 0.1.0
 */
export * as AnthropicProvider from "./AnthropicProvider.ts"
/**
 * @category memories
 * @since 0.1.0
 */
export * as EmbeddingMemory from "./EmbeddingMemory.ts"
/**
 * @category providers
 * @since 0.1.0
 */
export * as GeminiInteractionsProvider from "./GeminiInteractionsProvider.ts"
/**
 * @category providers
 * @since 0.1.0
 */
export * as GeminiProvider from "./GeminiProvider.ts"
/**
 * @category providers
 * @since 0.1.0
 */
export * as HttpModelRegistry from "./HttpModelRegistry.ts"
/**
 * @category providers
 * @since 0.1.0
 */
export * as OllamaProvider from "./OllamaProvider.ts"
/**
 * @category providers
 * @since 0.1.0
 */
export * as OpenAiCompatibleProvider from "./OpenAiCompatibleProvider.ts"
/**
 * @category providers
 * @since 0.1.0
 */
export * as OpenAiProvider from "./OpenAiProvider.ts"
/**
 * @category bridges
 * @since 0.1.0
 */
export * as KernaiLanguageModel from "./KernaiLanguageModel.ts"
/**
 * @category bridges
 * @since 0.1.0
 */
export * as LanguageModelProvider from "./LanguageModelProvider.ts"
/**
 * @category middleware
 * @since 0.1.0
 */
export * as Resilience from "./Resilience.ts"
/**
 * @category bridges
 * @since 0.1.0
 */
export * as SkillTools from "./SkillTools.ts"
