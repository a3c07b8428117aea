"""Shorter ways through Numba's compiler, for the versions whose inside they were tested with."""

from __future__ import annotations

import gc

from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering


class _InnerLibrary(JITCodeLibrary):
    """Code that is linked into that of other functions, of which alone machine code is made."""

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _InnerLowering(NativeLowering):
    def run_pass(self, state):
        state.library = _InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        name, owners = lowered.fndesc.qualname, (state.library,)
        entry_point = make_function(
            lowered.fndesc.lookup_module(), name, "", 0, lowered.env, owners
        )
        state.targetctx.insert_user_function(entry_point, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=entry_point)
        return True


class OuterCompiler(Compiler):
    """Numba's, with the garbage collector off, which would take a tenth of the time."""

    def compile_extra(self, func):
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if was_enabled:
                gc.enable()


class InnerCompiler(Compiler):
    """Numba's, without machine code for what is only called by compiled functions."""

    def define_pipelines(self):
        usual = DefaultPassBuilder.define_nopython_pipeline(self.state)
        own = PassManager(usual.pipeline_name)
        for of_pass, description in usual.passes:
            own.add_pass(_InnerLowering if of_pass is NativeLowering else of_pass, description)
        own.finalize()
        return [own]
