export {
  isMissingProgram,
  outputOf,
  type ProgramOptions,
  type ProgramResult,
  runProgram,
} from './program.js'
