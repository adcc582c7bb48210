"""Whisper as a window decoder, by faster-whisper on CTranslate2."""

from __future__ import annotations

import os
import string
from collections.abc import Sequence
import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.transcribe import get_suppressed_tokens, merge_punctuations
from engine.asr.contract import SAMPLE_RATE, Word

X = dict(pad_s=float(os.environ.get("PAD", 1.0)), min_s=float(os.environ.get("MIN", 6)), full=bool(int(os.environ.get("FULL", 0))),
   beam=int(os.environ.get("BEAM", 1)), force=bool(int(os.environ.get("FORCE", 1))), prompt=bool(int(os.environ.get("PROMPT",0))), padval=os.environ.get("PADVAL","zero"), lead=float(os.environ.get("LEAD","0")), ts=bool(int(os.environ.get("TS",0))))
PRE = "\"'“¿([{-"; APP="\"'.。,，!！?？:：”)]}、"
import time
STAT = dict(n=0, feat=0., enc=0., gen=0., align=0.)

class WhisperDecoder:
    def __init__(self, folder, language="en", threads=1):
        self.m = WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=threads, num_workers=1)
        self.tok = Tokenizer(self.m.hf_tokenizer, self.m.model.is_multilingual, task="transcribe", language=language)
        self.supp = list(get_suppressed_tokens(self.tok, [-1]))
    def decode(self, audio, committed_text, committed=()):
        m, tok = self.m, self.tok
        c = time.process_time; t0 = c()
        L = int(X["lead"]*16000)
        f = m.feature_extractor(np.concatenate((np.zeros(L,np.float32), audio)), padding=160)
        n = min(f.shape[-1], (len(audio)+L)//160)
        f = f[:, :n]
        total = 3000 if X["full"] else min(3000, max(int(X["min_s"]*100), n + int(X["pad_s"]*100)))
        total += total % 2
        val = 0.0 if X["padval"]=="zero" else float(f.max() - 2.0)
        f = np.pad(f, ((0,0),(0,total-n)), constant_values=val)
        t1 = c(); enc = m.encode(f); t2 = c()
        prompt = []
        if X["prompt"] and committed_text:
            prompt = [tok.sot_prev] + tok.encode(" " + committed_text.strip())[-50:]
        prompt += [*tok.sot_sequence, tok.no_timestamps]
        forced = tok.encode(" " + " ".join(w.text for w in committed)) if X["force"] and committed else []
        sec = n/100
        r = m.model.generate(enc, [prompt + forced], beam_size=X["beam"], max_length=min(448, len(prompt)+len(forced)+int(8*sec)+8), return_scores=True, return_no_speech_prob=True,
            suppress_blank=not forced, suppress_tokens=self.supp)[0]
        t3 = c()
        tokens = [t for t in r.sequences_ids[0] if t < tok.eot]
        self.last = r
        al = m.find_alignment(tok, [tokens], enc, n) if tokens else [[]]
        al = al[0] if al else []
        merge_punctuations(al, PRE, APP)
        t4 = c()
        for k,v in zip(("n","feat","enc","gen","align"), (1,t1-t0,t2-t1,t3-t2,t4-t3)): STAT[k]+=v
        out=[]
        for a in al:
            a['start']=max(0,a['start']-X['lead']); a['end']=max(0,a['end']-X['lead'])
            if not a["word"].strip(): continue
            if out and not a["word"].startswith(" "): out[-1]=Word(out[-1].text+a["word"].strip(), out[-1].start_s, float(a["end"]))
            else: out.append(Word(a["word"].strip(), float(a["start"]), float(a["end"])))
        return out
