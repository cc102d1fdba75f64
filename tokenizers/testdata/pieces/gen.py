# SPDX-License-Identifier: Apache-2.0
"""Trains small SentencePiece models on texts of this repository and records what the library does.

    pip install sentencepiece==0.2.3 protobuf && python gen.py

A line of golden.jsonl has a text, its ids, those with the beginning of a text, the offsets in bytes, the normalized and
the decoded text if they differ from the text, and random ids with their text.
"""
import io, json, os, random, tempfile
import sentencepiece as sp
from sentencepiece import sentencepiece_model_pb2 as pb
random.seed(11)
here=os.path.dirname(os.path.abspath(__file__))
corpus=[l[:200] for l in open(os.path.join(here,'../../README.md')).read().split('\n')+open(os.path.join(here,'../../../CONTRIBUTING.md')).read().split('\n') if l.strip()]
tmp=tempfile.mkdtemp()
tsv=tmp+'/n.tsv'; open(tsv,'w').write("41\t61\n42 43\t78 20 79\nE9\t65 301\nA0\t20\n3000\t20\n200B\t\nFB01\t66 69\n")
den=tmp+'/d.tsv'; open(den,'w').write("61 62\t41\n61 62 63\t43\nE9\t65\n")
def train(**k):
    m=io.BytesIO()
    sp.SentencePieceTrainer.train(sentence_iterator=iter(corpus),model_writer=m,minloglevel=2,num_threads=1,hard_vocab_limit=False,character_coverage=.98,**k)
    return m.getvalue()
def mut(b,f):
    m=pb.ModelProto(); m.ParseFromString(b); f(m)
    # settings of the training are not needed
    m.trainer_spec.ClearField('input'); m.normalizer_spec.ClearField('normalization_rule_tsv'); m.denormalizer_spec.ClearField('normalization_rule_tsv')
    return m.SerializeToString()
def unused(m):
    for p in m.pieces:
        if p.type==1 and random.random()<.2: p.type=5
def ties(m):
    for p in m.pieces:
        if p.type==1: p.score=-random.randint(1,5)
same=lambda m:None
M={'bpe-bytes':mut(train(model_type='bpe',vocab_size=460,byte_fallback=True,normalization_rule_name='identity',remove_extra_whitespaces=False,user_defined_symbols=['<x>','ab','▁▁','北京'],control_symbols=['[INST]','[/INST]']),same),
'bpe-rules':mut(train(model_type='bpe',vocab_size=260,normalization_rule_tsv=tsv,treat_whitespace_as_suffix=True,unk_surface='?'),same),
'bpe-unused':mut(train(model_type='bpe',vocab_size=280,normalization_rule_name='identity'),lambda m:(unused(m),ties(m))),
'unigram':mut(train(model_type='unigram',vocab_size=300,normalization_rule_tsv=tsv,denormalization_rule_tsv=den,user_defined_symbols=['<x>','the']),same),
'unigram-ties':mut(train(model_type='unigram',vocab_size=520,byte_fallback=True,normalization_rule_name='identity',add_dummy_prefix=False),ties),
'word':mut(train(model_type='word',vocab_size=200,normalization_rule_name='identity'),same),
'char':mut(train(model_type='char',vocab_size=120,normalization_rule_tsv=tsv,user_defined_symbols=['the','[MASK]']),unused)}
al=list("aabbeehtrsABC019.,-_<>|()'")+[' ']*6+['  ','\n','\t','the','<x>','ab','abc','北京','中','é','e\u0301','ﬁ','\u200b','\u3000','▁','▁▁','😀','\u0000','<s>','</s>','<unk>','[INST]','[MASK]','<0x41>','\u00a0','aaaa','is the']
def text(k):
    if k%2: return ''.join(random.choice(al) for _ in range(random.randint(0,14)))
    c=random.choice(corpus); i=random.randrange(len(c)); return c[i:i+random.randint(0,40)]
for n,b in M.items():
    p=sp.SentencePieceProcessor(model_proto=b)
    d=os.path.join(here,n); os.makedirs(d,exist_ok=True); open(d+'/tokenizer.model','wb').write(b)
    with open(d+'/golden.jsonl','w') as o:
        for k in range(60):
            t=text(k) if k else ''
            s=p.encode(t,out_type='proto'); ids=[x.id for x in s.pieces]; off=[]
            for x in s.pieces: off+=[x.begin,x.end]
            L={'text':t,'ids':ids,'offsets_bytes':off}
            if p.bos_id()>=0: L['ids_special']=[p.bos_id()]+ids
            if p.normalize(t)!=t: L['norm']=p.normalize(t)
            if p.decode(ids)!=t: L['dec']=p.decode(ids)
            rid=[random.randrange(p.get_piece_size()) if random.random()<.6 else random.choice(ids or [0]) for _ in range(random.randint(0,6))]
            L['any']=rid; L['any_dec']=p.decode(rid)
            o.write(json.dumps(L,ensure_ascii=False)+'\n')
