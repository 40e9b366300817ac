/** Texts that the browser keeps. In a frame whose storage the browser denies, they are kept as long as the page is open. */

interface Kept {
  readonly get: (key: string) => string | undefined
  /** Keeps a text, or forgets it. */
  readonly set: (key: string, text: string | undefined) => void
}

const keptBy = (storage: () => Storage): Kept => {
  const memory = new Map<string, string>()
  const found = ((): Storage | undefined => {
    try {
      return storage()
    } catch {
      return undefined
    }
  })()
  return {
    get: (key) => found?.getItem(key) ?? memory.get(key),
    set: (key, text) => {
      if (text === undefined) {
        found?.removeItem(key)
        memory.delete(key)
      } else if (found === undefined) memory.set(key, text)
      else found.setItem(key, text)
    }
  }
}

export const inBrowser: Kept = keptBy(() => localStorage)
export const inTab: Kept = keptBy(() => sessionStorage)
