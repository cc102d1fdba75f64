# SPDX-License-Identifier: Apache-2.0
"""Makes the small tokenizers that gen.js does not: decoders with steps for the whole text, two frames and the like.

    node gen.js && pip install tokenizers==0.23.3 && python gen.py

It appends their vectors to golden.jsonl, which gen.js writes. Texts on which the reference panics are left out.
"""
import json, os
from tokenizers import Tokenizer

here=os.path.dirname(os.path.abspath(__file__))
def at(c,id,special=True,norm=False): return {"id":id,"content":c,"single_word":False,"lstrip":False,"rstrip":False,"normalized":norm,"special":special}
def bl():
    bs=list(range(33,127))+list(range(161,173))+list(range(174,256)); cs=bs[:]; n=0
    for b in range(256):
        if b not in bs: bs.append(b); cs.append(256+n); n+=1
    return {b:chr(c) for b,c in zip(bs,cs)}
BL=bl()
byte={BL[b]:b for b in range(256)}
B=dict(byte); 
for t in ["he","Ġt","Ġthe","ll","er","Ġa"]: B[t]=len(B)
M=["h e","Ġ t","Ġt he","l l","e r","Ġ a"]
bpe={"type":"BPE","vocab":B,"merges":M}
BLp={"type":"ByteLevel","add_prefix_space":False,"trim_offsets":True,"use_regex":True}
def base(**k):
    d={"version":"1.0","truncation":None,"padding":None,"added_tokens":[],"normalizer":None,"pre_tokenizer":None,"post_processor":None,"decoder":None}; d.update(k); return d
kinds={}
S={"type":"Sequence"}
kinds['decoder-bytes-first']=base(pre_tokenizer=BLp,added_tokens=[at("<s>",262)],model=bpe,decoder={**S,"decoders":[{"type":"ByteLevel","add_prefix_space":True,"trim_offsets":True,"use_regex":True},{"type":"Replace","pattern":{"String":" t"},"content":"_T"},{"type":"Strip","content":" ","start":1,"stop":1},{"type":"Fuse"},{"type":"WordPiece","prefix":"##","cleanup":True}]})
kinds['two-frames']=base(pre_tokenizer=BLp,added_tokens=[at("<s>",262),at("</s>",263)],model=bpe,decoder=BLp,post_processor={**S,"processors":[
  {"type":"RobertaProcessing","sep":["</s>",263],"cls":["<s>",262],"trim_offsets":True,"add_prefix_space":True},
  {"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"x":{"id":"x","ids":[300,262],"tokens":["x","<s>"]},"</s>":{"id":"</s>","ids":[263],"tokens":["</s>"]}},"add_prefix_space":False,"trim_offsets":True,"use_regex":False}]})
V={"<unk>":0,"<pad>":1,"|":2}
for c in "abcdefghijklmnopqrstuvwxyz'.,!?": V[c]=len(V)
V[" n't"]=len(V)
kinds['ctc']=base(added_tokens=[at("<unk>",0),at("<pad>",1)],pre_tokenizer={"type":"FixedLength","length":1},normalizer={**S,"normalizers":[{"type":"Lowercase"},{"type":"Replace","pattern":{"String":" "},"content":"|"}]},model={"type":"WordLevel","vocab":V,"unk_token":"<unk>"},decoder={"type":"CTC","pad_token":"<pad>","word_delimiter_token":"|","cleanup":True})
U={"<unk>":0}
for i in range(256): U["<0x%02X>"%i]=len(U)
for t in ["▁","h","e","l","o","he","▁he","ll","a","t","▁t","▁the","C"]: U[t]=len(U)
sp={"type":"BPE","vocab":U,"merges":["h e","▁ he","l l","▁ t","▁t he"],"unk_token":"<unk>","fuse_unk":True,"byte_fallback":True}
meta={"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":False}
kinds['metaspace-after-bytes']=base(added_tokens=[at("<unk>",0),at("<x>",len(U))],pre_tokenizer=meta,model=sp,decoder={**S,"decoders":[{"type":"ByteFallback"},meta,{"type":"Replace","pattern":{"String":"é"},"content":"E▁"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0},{"type":"Replace","pattern":{"String":"ll"},"content":"L"}]})
W={"[UNK]":0,"[CLS]":1,"[SEP]":2}
for t in ["the","##re","a","##b","Ġthe","Ġ","##Ġ","ĠĠ"]: W[t]=len(W)
kinds['wordpiece-trimmed']=base(added_tokens=[at("[UNK]",0),at("[CLS]",1),{**at("[SEP]",2),"lstrip":True}],pre_tokenizer={**BLp,"use_regex":True},model={"type":"WordPiece","vocab":W,"unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100},post_processor={"type":"ByteLevel","add_prefix_space":True,"trim_offsets":True,"use_regex":True},decoder={"type":"WordPiece","prefix":"##","cleanup":True})
K={"<unk>":0,"<s>":1}
for t in ["😀","a","b","▁","t","h","e","th","the","▁the","·"]: K[t]=len(K)
kinds['special-character']=base(added_tokens=[at("<unk>",0),at("<s>",1),at("😀",2),at("·",K["·"])],pre_tokenizer=meta,model={"type":"BPE","vocab":K,"merges":["t h","th e","▁ the"],"unk_token":"<unk>"},decoder=meta)
texts=["","a","the","hello the there","  the  ","\n\t the \n"," a  b","é","hé lló","中文 the","😀 the·a","<s>the</s>","[UNK] a [SEP] b","a[SEP]","  [UNK]  ","aab bb llama","thethe lll","it's n't do not . ok !","\u2581the ▁","e\u0301 ▁x","tell the tale","<unk><pad>","<x>é<x>","C▁","\u00a0the\u3000x","l'Île d' oui ?","THE The","   ","a\u00a0","ll ll","the 123 the"]
out=open(os.path.join(here,'golden.jsonl'),'a')
for k,d in kinds.items():
    s=json.dumps(d,ensure_ascii=False,separators=(',',':'))
    open(os.path.join(here,k+'.json'),'w').write(s+'\n')
    t=Tokenizer.from_str(s)
    for x in texts:
        try:
            e=t.encode(x,add_special_tokens=False); f=t.encode(x)
            L={"kind":k,"text":x,"ids":e.ids}
            if f.ids!=e.ids: L["ids_special"]=f.ids
            dd=t.decode(e.ids,skip_special_tokens=False); ds=t.decode(f.ids,skip_special_tokens=True)
            if dd!=x: L["dec"]=dd
            if ds!=x: L["dec_skip"]=ds
            L["offsets"]=[n for p in e.offsets for n in p]
        except BaseException as ex: print(k,repr(x),str(ex)[:80]); continue
        out.write(json.dumps(L,ensure_ascii=False)+'\n')
